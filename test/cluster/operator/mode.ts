// SPDX-License-Identifier: Apache-2.0
/** An Installation whose mode is another one afterwards, as docs/switch.md says. Layer: test. */
import { expect } from 'vitest'
import { at, listAt, textAt } from '../../../lab/raw.ts'
import type { Cluster } from '../../../testkit/kubernetes/cluster.ts'
import { available, condition } from './installed.ts'

export type Mode = 'BPF' | 'Standard'

/** So long all nodes may take. */
export const SWITCH_S = 90
/** The same where API servers are killed: a kubelet that has lost its watch asks again up to half a minute later, and
 * nodes that do not probe the tunnel at the same time are asked three times. */
export const SWITCH_WITH_KILLS_S = 240

/** Beside a kube-proxy that the operator may stop, with more of its spec. */
export function standardInstallation(more: { readonly ipPools?: readonly object[]; readonly nodeUpdateStrategy?: object }): object {
  const { ipPools = [], ...others } = more
  const netplaneNetwork = { linuxDataplane: 'Standard', hostPorts: 'Enabled', kubeProxyManagement: 'Enabled', ipPools }
  const spec = { variant: 'Netplane', netplaneNetwork, ...others }
  return { apiVersion: 'operator.netplane.io/v1', kind: 'Installation', metadata: { name: 'default' }, spec }
}

export async function askFor(cluster: Cluster, mode: Mode): Promise<void> {
  const patch = { spec: { netplaneNetwork: { linuxDataplane: mode, hostPorts: null } } }
  await cluster.kubectl(['patch', 'installation', 'default', '--type=merge', '-p', JSON.stringify(patch)])
}

/** So many nodes may be away at a time, from now on. */
export async function setMaxUnavailable(cluster: Cluster, maxUnavailable: string): Promise<void> {
  const patch = { spec: { nodeUpdateStrategy: { maxUnavailable } } }
  await cluster.kubectl(['patch', 'installation', 'default', '--type=merge', '-p', JSON.stringify(patch)])
}

/** Resolves when the Installation is Available, all nodes are in the mode, and nothing is going on. */
export async function isOver(cluster: Cluster, mode: Mode, seconds = SWITCH_S): Promise<void> {
  await available(cluster, seconds)
  const soon = { timeout: seconds * 1000 }
  for (const component of ['proxy', 'services'])
    await expect.poll(() => condition(cluster, component, 'Progressing'), soon).toMatchObject({ status: 'False' })
  expect(new Set(Object.values(await modeByNode(cluster)))).toEqual(new Set([mode]))
  expect(at(await defaultConfiguration(cluster), 'spec.bpfEnabled')).toBe(mode === 'BPF')
}

/** Resolves when it is over, on all nodes. */
export async function switchTo(cluster: Cluster, mode: Mode): Promise<void> {
  const began = performance.now()
  await askFor(cluster, mode)
  await isOver(cluster, mode)
  console.log(`switch: to ${mode} in ${((performance.now() - began) / 1000).toFixed(1)} s`)
}

/** In which each node of the cluster serves. */
export async function modeByNode(cluster: Cluster): Promise<Readonly<Record<string, string | undefined>>> {
  const found = await cluster.get('nodes,nodenetworks')
  const of = (kind: string): readonly unknown[] => listAt(found, 'items').filter((one) => textAt(one, 'kind') === kind)
  const modes = new Map(of('NodeNetwork').map((one) => [textAt(one, 'metadata.name'), textAt(one, 'status.dataplane.mode')]))
  return Object.fromEntries(of('Node').map((node) => [textAt(node, 'metadata.name') ?? '', modes.get(textAt(node, 'metadata.name'))]))
}

/** That of all nodes without one of their own. */
export async function defaultConfiguration(cluster: Cluster): Promise<unknown> {
  return await cluster.get('felixconfiguration', 'default')
}
