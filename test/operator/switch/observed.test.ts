// SPDX-License-Identifier: Apache-2.0
/** What a switch reads from objects of the cluster. Layer: test. */
import { expect, test } from 'vitest'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { MARK, markText } from '#operator/switch/mark.ts'
import { observe, type ObservedInput } from '#operator/switch/observed.ts'
import { LostWords } from '#operator/switch/silent-agents.ts'
import { proxyFound } from '#operator/switch/proxy-found.ts'

const minute = (of: number): string => new Date(of * 60_000).toISOString()

function node(name: string, readySince: number): ApiObject {
  const conditions = [{ type: 'Ready', status: 'True', lastTransitionTime: minute(readySince) }]
  const metadata = { name, uid: `${name}-2`, labels: { 'kubernetes.io/os': 'linux' } }
  return asApiObject({ apiVersion: 'v1', kind: 'Node', metadata, status: { conditions } })
}

function observed(input: Partial<ObservedInput>): ReturnType<typeof observe> {
  const proxy = proxyFound({ action: 'command', daemonSet: undefined, network: undefined, pods: [], nodes: [], sight: [] })
  return observe({
    ...{ nodes: [], ownNode: undefined, nodeSelector: {}, nodeNetworks: new Map(), agents: undefined, agentPods: [], configurations: [] },
    ...{ proxy, lostAt: new Map(), locks: [], now: 0, ...input },
  })
}

test('an agent has its time from when its node was ready and its pod was made, or else the DaemonSet', () => {
  const metadata = { name: 'netplane-node', creationTimestamp: minute(5) }
  const agents = asApiObject({ apiVersion: 'apps/v1', kind: 'DaemonSet', metadata })
  const agentPods = ['a', 'b'].map((nodeName) =>
    asApiObject({ apiVersion: 'v1', kind: 'Pod', metadata: { name: nodeName, creationTimestamp: minute(9) }, spec: { nodeName } }),
  )
  const { nodes } = observed({ nodes: [node('a', 3), node('b', 12), node('c', 3)], agents, agentPods })
  expect(nodes.map(({ name, agentSince }) => [name, agentSince / 60_000])).toEqual([
    ['a', 9],
    ['b', 12],
    ['c', 5],
  ])
})

test('an agent whose words are gone has its time anew from then on, and one that speaks again has lost nothing', () => {
  const status = { dataplane: { mode: 'BPF', since: minute(1), configurations: {} } }
  const network = (name: string): [string, ApiObject] => [
    `/${name}`,
    asApiObject({ apiVersion: 'netplane.io/v3', kind: 'NodeNetwork', metadata: { name }, status }),
  ]
  const words = new LostWords()
  const times = (nodeNetworks: readonly string[], at: number): readonly number[] => {
    const lostAt = words.saw(new Map(nodeNetworks.map(network)), at * 60_000)
    return observed({ nodes: [node('a', 3), node('b', 3)], lostAt }).nodes.map(({ agentSince }) => agentSince / 60_000)
  }
  expect(times(['a'], 10)).toEqual([3, 3])
  expect(times([], 40)).toEqual([40, 3])
  expect(times([], 41)).toEqual([40, 3])
  expect(times(['a'], 42)).toEqual([3, 3])
})

test('a mark counts for the node that it is of, and for one whose operator knew no UIDs', () => {
  const marked = (name: string, uid: string | undefined): ApiObject => {
    const annotations = { [MARK]: markText({ to: 'BPF', at: 0, ...(uid !== undefined && { uid }) }) }
    const metadata = { name: `node.${name}`, annotations }
    return asApiObject({ apiVersion: 'netplane.io/v3', kind: 'FelixConfiguration', metadata, spec: { bpfEnabled: true } })
  }
  const configurations = [marked('a', 'a-2'), marked('b', 'b-1'), marked('c', undefined), marked('gone', 'gone-1')]
  const { overrides } = observed({ nodes: ['a', 'b', 'c'].map((name) => node(name, 0)), configurations })
  expect([...overrides].map(([name, { mark, isInherited }]) => [name, mark?.to, isInherited])).toEqual([
    ['a', 'BPF', false],
    ['b', undefined, true],
    ['c', 'BPF', false],
    ['gone', 'BPF', false],
  ])
})
