// SPDX-License-Identifier: Apache-2.0
/** Endpoints near the client, as hints in the slices say. Layer: test. */
import { test } from 'vitest'
import type { Cluster } from '../../../testkit/lab/cluster.ts'
import { nodeOf, ZONES, type EndpointSpec } from '../../../testkit/lab/manifests.ts'

const EAST = 'shell-a'
const WEST = ['shell-b', 'shell-c']
const ALL = [EAST, ...WEST]

/** As the controller writes it for all that prefer the zone: each endpoint for its own. */
function forZone(...pods: string[]): EndpointSpec[] {
  return pods.map((pod) => ({ pod, zones: [ZONES[nodeOf(pod)]] }))
}

/** As it writes it for PreferSameNode. */
function forNode(...pods: string[]): EndpointSpec[] {
  return pods.map((pod) => ({ pod, zones: [ZONES[nodeOf(pod)]], nodes: [nodeOf(pod)] }))
}

export function hintTests(cluster: Cluster): void {
  test('should distribute endpoints evenly', async () => {
    const service = cluster.service()
    service.put({ endpoints: forZone('a-1', 'a-2', 'b-1', 'c-1') })
    await cluster.reaches([EAST, 'node/a'], service.everywhere, ['a-1', 'a-2'])
    await cluster.reaches([...WEST, 'node/b'], service.everywhere, ['b-1', 'c-1'])
    // one endpoint without a hint: none is believed
    service.put({ endpoints: [...forZone('a-1', 'b-1'), 'c-1'] })
    await cluster.reaches(ALL, service.everywhere, ['a-1', 'b-1', 'c-1'])
    // an endpoint may be lent to another zone
    service.put({ endpoints: [{ pod: 'a-1', zones: ['west'] }, ...forZone('a-2', 'b-1')] })
    await cluster.reaches(EAST, service.everywhere, ['a-2'])
    await cluster.reaches(WEST, service.everywhere, ['a-1', 'b-1'])
  })
}

export function distributionTests(cluster: Cluster): void {
  for (const trafficDistribution of ['PreferClose', 'PreferSameZone']) {
    test(`should route traffic to an endpoint in the same zone when using ${trafficDistribution}`, async () => {
      const service = cluster.service()
      service.put({ more: { trafficDistribution }, endpoints: forZone('a-1', 'b-1') })
      await cluster.reaches([EAST, 'node/a'], service.everywhere, ['a-1'])
      await cluster.reaches([...WEST, 'node/c'], service.everywhere, ['b-1'])
    })

    test(`should route traffic correctly between pods on multiple nodes when using ${trafficDistribution}`, async () => {
      const service = cluster.service()
      service.put({ more: { trafficDistribution }, endpoints: forZone('a-1', 'b-1', 'c-1') })
      await cluster.reaches(EAST, service.everywhere, ['a-1'])
      await cluster.reaches(WEST, service.everywhere, ['b-1', 'c-1'])
      // the zone has none left
      service.put({ endpoints: forZone('b-1', 'c-1') })
      await cluster.reaches(ALL, service.everywhere, ['b-1', 'c-1'])
      // nor one that is ready
      service.put({ endpoints: [{ pod: 'a-1', zones: ['east'], ready: false }, ...forZone('b-1')] })
      await cluster.reaches(ALL, service.everywhere, ['b-1'])
    })
  }

  test('should route traffic to an endpoint on the same node or fall back to same zone when using PreferSameNode', async () => {
    const service = cluster.service()
    service.put({ more: { trafficDistribution: 'PreferSameNode' }, endpoints: forNode('a-1', 'b-1') })
    await cluster.reaches([EAST, 'node/a'], service.everywhere, ['a-1'])
    await cluster.reaches('shell-b', service.everywhere, ['b-1'])
    await cluster.reaches(['shell-c', 'node/c'], service.everywhere, ['b-1'])
    service.put({ endpoints: forNode('a-1') })
    await cluster.reaches(ALL, service.everywhere, ['a-1'])
  })

  test('should route traffic to an endpoint on the same node when using PreferSameNode and fall back when the endpoint becomes unavailable', async () => {
    const service = cluster.service()
    service.put({ more: { trafficDistribution: 'PreferSameNode' }, endpoints: forNode('b-1', 'c-1') })
    await cluster.reaches(['shell-b', 'node/b'], service.everywhere, ['b-1'])
    await cluster.reaches('shell-c', service.everywhere, ['c-1'])
    service.put({ endpoints: [{ pod: 'b-1', zones: ['west'], nodes: ['b'], ready: false }, ...forNode('c-1')] })
    await cluster.reaches(['shell-b', 'shell-c'], service.everywhere, ['c-1'])
    service.put({ endpoints: forNode('b-1', 'c-1') })
    await cluster.reaches(['shell-b', 'node/b'], service.everywhere, ['b-1'])
  })
}
