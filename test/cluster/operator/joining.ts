// SPDX-License-Identifier: Apache-2.0
/** Nodes that join in each phase of a switch: kube-proxy or we serve each, from its first moment. Layer: test. */
import { expect } from 'vitest'
import { listAt, textAt } from '../../../lab/raw.ts'
import type { Cluster } from '../../../testkit/kubernetes/cluster.ts'
import { livesOf } from '../../../testkit/kubernetes/kubelets/in-cluster.ts'
import type { Mode } from './mode.ts'

/** What the status says when each of them joins. */
export const JOINING = {
  BPF: {
    'to-bpf-preflight': 'to BPF mode, phase preflight',
    'to-bpf-canary': 'to BPF mode, phase canary',
    'to-bpf-wave': 'to BPF mode, phase wave',
    'to-bpf-default': 'to BPF mode, phase default',
    'to-bpf-finish': 'to BPF mode, phase finish',
    'to-bpf-proxy': 'BPF mode on',
    'to-bpf-stopping': 'kube-proxy is still to go',
  },
  Standard: {
    'to-standard-proxy': 'to Standard mode, phase proxy',
    'to-standard-hold': 'to Standard mode, phase hold',
    'to-standard-default': 'to Standard mode, phase default',
    'to-standard-canary': 'to Standard mode, phase canary',
    'to-standard-wave': 'to Standard mode, phase wave',
    'to-standard-finish': 'to Standard mode, phase finish',
  },
} as const

/** Until the default is written a node comes up as all were before, and follows. */
const FOLLOW: Readonly<Record<Mode, readonly string[]>> = {
  BPF: ['to-bpf-preflight', 'to-bpf-canary', 'to-bpf-wave'],
  Standard: ['to-standard-proxy', 'to-standard-hold'],
}
const OTHER = { BPF: 'Standard', Standard: 'BPF' } as const

/** After the switch to this mode, of all that joined meanwhile. */
export async function expectOneServed(cluster: Cluster, mode: Mode): Promise<void> {
  const nodes = Object.keys(JOINING[mode])
  const expected = nodes.map((node) => [node, ['joins', ...(FOLLOW[mode].includes(node) ? [OTHER[mode]] : []), mode]])
  expect(livesOf(cluster, nodes)).toEqual(Object.fromEntries(expected))
  const found = listAt(await cluster.get('nodenetworks', ...nodes), 'items')
  expect(new Set(found.map((one) => textAt(one, 'status.kubeProxy')))).toEqual(new Set([mode === 'BPF' ? 'Absent' : 'Present']))
}
