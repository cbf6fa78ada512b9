// SPDX-License-Identifier: Apache-2.0
/** Load balancers' addresses, as they come to a node: the lab's client sends to them by a route. Layer: test. */
import { expect, test } from 'vitest'
import { clientAddress } from './client.ts'
import { peers, type Cluster } from '../../../testkit/lab/cluster.ts'
import { cycles } from './conntrack.ts'
import { addressOf, FAMILIES, NODES, PROTOS } from '../../../testkit/lab/manifests.ts'
import { BOTH_PROTOCOLS, type TestService } from '../../../testkit/lab/test-service.ts'

function ranges(cluster: Cluster, ...places: string[]): { loadBalancerSourceRanges: string[] } {
  const range = (place: string): string[] =>
    FAMILIES.map((family) => `${place === 'client' ? clientAddress(cluster, family) : addressOf(place, family)}/${family === 4 ? 32 : 128}`)
  return { loadBalancerSourceRanges: places.flatMap(range) }
}

function localPolicy(service: TestService): object {
  return { externalTrafficPolicy: 'Local', healthCheckNodePort: service.healthCheckNodePort }
}

export function loadBalancerTests(cluster: Cluster): void {
  test('should only allow access from service loadbalancer source ranges [Slow]', async () => {
    const service = cluster.service()
    service.put({ type: 'LoadBalancer', endpoints: ['a-1', 'b-1'], more: ranges(cluster, 'shell-a') })
    await cluster.reaches('shell-a', service.outerEverywhere, ['a-1', 'b-1'])
    await cluster.silent(['client', 'shell-b'], service.outerEverywhere)
    // only those addresses
    await cluster.reaches(['shell-a', 'shell-b'], service.everywhere, ['a-1', 'b-1'])
    await cluster.reaches('client', service.onEvery('a'), ['a-1', 'b-1'])
    service.put({ more: ranges(cluster, 'shell-b', 'client') })
    await cluster.reaches(['client', 'shell-b'], service.outerEverywhere, ['a-1', 'b-1'])
    await cluster.silent('shell-a', service.outerEverywhere)
    service.put({ more: {} })
    await cluster.reaches(['client', 'shell-a', 'shell-b'], service.outerEverywhere, ['a-1', 'b-1'])
  })

  test('should be able to create LoadBalancer Service without NodePort and change it [Slow]', async () => {
    const service = cluster.service()
    const without = BOTH_PROTOCOLS.map((port) => ({ ...port, nodePort: false as const }))
    service.put({ type: 'LoadBalancer', ports: without, endpoints: ['a-1', 'b-1'], more: { allocateLoadBalancerNodePorts: false } })
    await cluster.reaches(['client', 'shell-c'], service.outerEverywhere, ['a-1', 'b-1'])
    await cluster.refuses('client', service.onEvery('a'))
    service.put({ ports: BOTH_PROTOCOLS, more: { allocateLoadBalancerNodePorts: true } })
    await cluster.reaches('client', [...service.onEvery('a'), ...service.outerEverywhere], ['a-1', 'b-1'])
  })

  for (const [where, pods] of [
    ['different nodes', ['a-1', 'b-1', 'c-1']],
    ['the same nodes', ['b-1', 'b-2', 'b-1']],
  ] as const)
    test(`should be able to preserve UDP traffic when server pod cycles for a LoadBalancer service on ${where}`, async () => {
      const service = cluster.service()
      service.put({ type: 'LoadBalancer' })
      await cycles(cluster, service, { from: 'client', to: (family) => service.outer(family, 'udp'), pods })
    })
}

export function localBalancerTests(cluster: Cluster): void {
  test('should work for type=LoadBalancer', async () => {
    const service = cluster.service()
    service.put({ type: 'LoadBalancer', endpoints: ['a-1'], more: localPolicy(service) })
    await cluster.health('a', service, 200)
    for (const node of ['b', 'c'] as const) await cluster.health(node, service, 503)
    for (const family of FAMILIES)
      for (const proto of PROTOS)
        expect(peers(await cluster.reaches('client', service.outer(family, proto), ['a-1']))).toEqual([clientAddress(cluster, family)])
    service.remove()
    for (const node of NODES) await cluster.health(node, service, 'ECONNREFUSED')
  })

  test('should only target nodes with endpoints', async () => {
    const service = cluster.service()
    service.put({ type: 'LoadBalancer', more: localPolicy(service) })
    try {
      for (const home of NODES) {
        service.put({ endpoints: [`${home}-1`] })
        for (const node of NODES) await cluster.health(node, service, node === home ? 200 : 503)
        await cluster.routeOuter(home)
        await cluster.reaches('client', service.outerEverywhere, [`${home}-1`])
      }
      // a balancer that has not heard yet
      await cluster.routeOuter('a')
      await cluster.fails('client', service.outerEverywhere)
    } finally {
      await cluster.routeOuter('a')
    }
  })

  test('should target all nodes with endpoints', async () => {
    const service = cluster.service()
    const endpoints = NODES.map((node) => `${node}-1`)
    service.put({ type: 'LoadBalancer', endpoints, more: localPolicy(service) })
    try {
      for (const node of NODES) {
        await cluster.health(node, service, 200)
        await cluster.reaches('client', service.onEvery(node), [`${node}-1`])
        await cluster.routeOuter(node)
        await cluster.reaches('client', service.outerEverywhere, [`${node}-1`])
      }
      service.put({ more: { externalTrafficPolicy: 'Cluster' } })
      for (const node of NODES) {
        await cluster.routeOuter(node)
        await cluster.reaches('client', [...service.onEvery(node), ...service.outerEverywhere], endpoints)
      }
    } finally {
      await cluster.routeOuter('a')
    }
  })

  test('should work from pods', async () => {
    const service = cluster.service()
    service.put({ type: 'LoadBalancer', endpoints: ['a-1'], more: localPolicy(service) })
    for (const from of ['shell-a', 'shell-b', 'shell-c'])
      for (const family of FAMILIES)
        for (const proto of PROTOS)
          expect(peers(await cluster.reaches(from, service.outer(family, proto), ['a-1']))).toEqual([addressOf(from, family)])
  })
}
