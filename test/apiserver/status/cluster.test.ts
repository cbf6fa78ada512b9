// SPDX-License-Identifier: Apache-2.0
/** What agents tell a real API server of the cluster. The clock is the test's. Layer: test. */
import { describe, expect, test } from 'vitest'
import { asApiObject } from '#lib/api/resource.ts'
import { CLUSTER_INFORMATION } from '#lib/kube/objects/cluster-information.ts'
import { ClusterFacts } from '#agent/status/cluster-information.ts'
import { define } from '../definitions.ts'
import { statusServer, tell } from './server.ts'

const HOUR_MS = 3_600_000
const AGENTS = { apiVersion: 'apps/v1', kind: 'DaemonSet', namespace: 'default', name: 'agents' } as const

const server = await statusServer()

describe('ClusterInformation', () => {
  const facts = (node = 'n1', release = '0.1.0', names = ['n1']) =>
    new ClusterFacts({
      api: server.client,
      node,
      version: release,
      nodes: () => new Map(names.map((name) => [name, { labels: new Map([['kops.k8s.io/instancegroup', 'a']]) }])),
      isReady: () => true,
      newGuid: () => 'guid',
      daemonSet: AGENTS,
    })
  const spec = async (): Promise<unknown> => (await server.client.get(CLUSTER_INFORMATION))['spec']
  const whole = { clusterGUID: 'guid', clusterType: 'k8s,kops', netplaneVersion: 'v0.1.0', datastoreReady: true }

  test('where its kind is not defined nothing fails, and it is asked for seldom', async () => {
    const one = facts()
    expect([await tell(one, 0), await tell(one, 299_000)]).toEqual([1, 0])
  })

  test('is made, kept as it is, and has the version of the agent that started last', async () => {
    await define(server.client, CLUSTER_INFORMATION.kind)
    const one = facts()
    expect([await tell(one, 0), await tell(one, 60_000), await spec()]).toEqual([1, 1, whole])
    const before = await server.version(CLUSTER_INFORMATION)
    await tell(facts(), 0)
    expect(await server.version(CLUSTER_INFORMATION)).toBe(before)
    // an administrator's word, and a newer agent's
    await server.client.patch(CLUSTER_INFORMATION, { spec: { datastoreReady: false, clusterGUID: 'old' } }, { type: 'merge' })
    await tell(facts('n1', '0.2.0'), 0)
    expect(await spec()).toEqual({ ...whole, clusterGUID: 'old', netplaneVersion: 'v0.2.0', datastoreReady: false })
    await tell(one, 3 * HOUR_MS)
    expect(await spec()).toMatchObject({ netplaneVersion: 'v0.2.0' })
    await server.client.patch(CLUSTER_INFORMATION, { spec: { clusterType: null } }, { type: 'merge' })
    await tell(one, 6 * HOUR_MS)
    expect(await spec()).toMatchObject({ netplaneVersion: 'v0.2.0', clusterType: 'k8s,kops' })
  })

  test('shows how many nodes have agents that are ready, a minute old at most', async () => {
    const template = { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'i' }] } }
    const selector = { matchLabels: { a: 'b' } }
    const { namespace, name } = AGENTS
    await server.client.create(asApiObject({ ...AGENTS, metadata: { namespace, name }, spec: { selector, template } }))
    const counted = (ready: number, observedGeneration: number) => ({
      status: { desiredNumberScheduled: 3, numberReady: ready, updatedNumberScheduled: 2, observedGeneration },
    })
    const one = facts()
    const toldAt = async (now: number, status: object): Promise<unknown> => {
      await server.client.patch(AGENTS, status, { type: 'merge', subresource: 'status' })
      await tell(one, now)
      return spec()
    }
    expect(await toldAt(0, counted(1, 1))).toMatchObject({ dataplane: { nodes: 3, ready: 1, updated: 2 } })
    const before = await server.version(CLUSTER_INFORMATION)
    await tell(one, 60_000)
    expect(await server.version(CLUSTER_INFORMATION)).toBe(before)
    expect(await toldAt(120_000, counted(3, 1))).toMatchObject({ dataplane: { nodes: 3, ready: 3, updated: 2 } })
    // of a set that is not the present one any more
    expect(await toldAt(180_000, counted(0, 0))).toMatchObject({ dataplane: { nodes: 3, ready: 3, updated: 2 } })
    await server.client.delete(AGENTS)
  })

  test('is left to controllers while these renew their Lease, and taken over when they do not', async () => {
    const lease = {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      namespace: AGENTS.namespace,
      name: 'netplane-controllers',
    } as const
    const { namespace, name } = lease
    const holds = (spec: object): Promise<unknown> => server.client.patch(lease, { spec }, { type: 'merge' })
    await server.client.create(asApiObject({ ...lease, metadata: { namespace, name }, spec: { holderIdentity: 'c', leaseTransitions: 0 } }))
    await server.client.delete(CLUSTER_INFORMATION)
    const isThere = async (): Promise<boolean> => (await server.client.list(CLUSTER_INFORMATION)).length > 0
    const one = facts()
    const told: boolean[] = []
    for (const [now, change] of [[0], [60_000, { leaseTransitions: 1 }], [120_000]] as const) {
      if (change !== undefined) await holds(change)
      await tell(one, now)
      told.push(await isThere())
    }
    expect(told).toEqual([false, false, true])
    // one that was given back has no holder
    await holds({ holderIdentity: '' })
    await server.client.delete(CLUSTER_INFORMATION)
    await tell(one, 180_000)
    expect(await isThere()).toBe(true)
    await server.client.delete(lease)
  })

  test('one node after the other looks after it', async () => {
    const names = ['n1', 'n2']
    const counts = await Promise.all(names.map((name) => tell(facts(name, '0.1.0', names), 0)))
    expect(counts.sort()).toEqual([0, 1])
    expect(await tell(facts('n3', '0.1.0', names), 0)).toBe(0)
  })
})
