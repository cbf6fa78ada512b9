// SPDX-License-Identifier: Apache-2.0
/** The paths of goals.md: where each begins, and what it is compared with. Layer: bench (pure). */
import type { Start } from './contender-lab.ts'
import type { Setting } from './result.ts'
import { ADDRESSES, PORT, far, near } from './manifests.ts'

export interface Destination {
  readonly address: string
  readonly port: number
}

export interface Path {
  readonly id: string
  readonly setting: Setting
  readonly start: Start
  /** what the contenders are asked for */
  readonly to: Destination
  /** the plain path to the same pod by the same hops */
  readonly plainTo: Destination
  /** streams of it are measured on wires as well */
  readonly onWires?: boolean
}

const NEAR = { address: ADDRESSES.near, port: PORT }
const FAR = { address: ADDRESSES.far, port: PORT }

const TUNNELLED = { plainTo: FAR, onWires: true } as const

const USUAL: readonly Omit<Path, 'setting'>[] = [
  { id: 'pod-local', start: 'pod', to: NEAR, plainTo: NEAR },
  { id: 'pod-remote', start: 'pod', to: FAR, plainTo: FAR },
  { id: 'clusterip-local.ctlb', start: 'pod', to: { address: near.clusterIp, port: PORT }, plainTo: NEAR },
  { id: 'clusterip-local.packet', start: 'pod-outside-cgroup', to: { address: near.clusterIp, port: PORT }, plainTo: NEAR },
  { id: 'nodeport-local', start: 'client', to: { address: ADDRESSES.entryNode, port: near.nodePort }, plainTo: NEAR },
  { ...TUNNELLED, id: 'nodeport-remote.tunnel', start: 'client', to: { address: ADDRESSES.entryNode, port: far.nodePort } },
]

export const paths: readonly Path[] = [
  ...USUAL.map((path) => ({ ...path, setting: 'usual' as const })),
  { ...TUNNELLED, id: 'nodeport-remote.dsr', setting: 'dsr', start: 'client', to: { address: ADDRESSES.entryNode, port: far.nodePort } },
  { ...TUNNELLED, id: 'pod-remote-vxlan', setting: 'overlay', start: 'pod', to: FAR },
]
