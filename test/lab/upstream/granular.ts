// SPDX-License-Identifier: Apache-2.0
/** One service, or two, with a pod on every node, in one family: from pods, from nodes, from the pods themselves.
 * Layer: test. */
import { expect, test } from 'vitest'
import type { Endpoint } from '../../../lab/tools/address.ts'
import { kinds, type Cluster } from '../../../testkit/lab/cluster.ts'
import { addressOf, HOST_PORT, NODES, type Family, type Proto } from '../../../testkit/lab/manifests.ts'
import { BOTH_PROTOCOLS, type TestService } from '../../../testkit/lab/test-service.ts'

const PODS = ['a-1', 'b-1', 'c-1']
const SHELLS = ['shell-a', 'shell-b', 'shell-c']
const HOSTS = ['node/a', 'node/b', 'node/c']
const HTTP_AND_UDP = [
  ['http', 'tcp'],
  ['udp', 'udp'],
] as const

function netserver(cluster: Cluster): TestService {
  const service = cluster.service()
  service.put({ type: 'NodePort', endpoints: PODS })
  return service
}

/** By the cluster address and by every node's port. */
function ways(service: TestService, family: Family, proto: Proto): Endpoint[] {
  return [service.at(family, proto), ...NODES.map((node) => service.on(node, family, proto))]
}

export function granularTests(cluster: Cluster, family: Family): void {
  for (const [name, proto] of HTTP_AND_UDP) {
    for (const [who, places] of [
      ['pod', SHELLS],
      ['node', HOSTS],
      ['endpoint', PODS],
    ] as const)
      test(`should function for ${who}-Service: ${name}`, async () => {
        const service = netserver(cluster)
        await cluster.reaches(places, ways(service, family, proto), PODS)
      })

    test(`should update endpoints: ${name}`, async () => {
      const service = netserver(cluster)
      await cluster.reaches(SHELLS, ways(service, family, proto), PODS)
      service.put({ endpoints: ['a-1', 'c-1'] })
      await cluster.reaches(SHELLS, ways(service, family, proto), ['a-1', 'c-1'])
      for (const from of SHELLS)
        for (const to of ways(service, family, proto)) {
          // a datagram from a port that was in use within the last second may still be of the flow that was there,
          // which would last for half a minute
          const answered = async (): Promise<unknown> => kinds(await cluster.ask(from, to, { count: 40 }))
          await expect.poll(answered, { timeout: 20_000, interval: 500 }).toEqual(['a-1', 'c-1'])
        }
    })

    test(`should function for client IP based session affinity: ${name} [LinuxOnly]`, async () => {
      const service = netserver(cluster)
      service.put({ more: { sessionAffinity: 'ClientIP' } })
      for (const from of SHELLS) await cluster.sticks(from, service.at(family, proto))
    })
  }

  test('should be able to handle large requests: http', async () => {
    const service = netserver(cluster)
    const size = { payload: 50_000, reply: 200_000, timeoutMs: 3000, count: 12 }
    await cluster.answers({ from: ['shell-a', 'node/b'], to: ways(service, family, 'tcp'), pods: PODS, ...size })
    await cluster.answers({ from: 'client', to: service.on('a', family), pods: PODS, ...size })
  })

  test('should be able to handle large requests: udp', async () => {
    const service = netserver(cluster)
    for (const bytes of [2000, 9000]) {
      const size = { payload: bytes, reply: bytes, count: 30 }
      await cluster.answers({ from: ['shell-a', 'node/b'], to: ways(service, family, 'udp'), pods: PODS, ...size })
      await cluster.answers({ from: 'client', to: service.on('a', family, 'udp'), pods: PODS, ...size })
    }
  })

  test('should function for service endpoints using hostNetwork', async () => {
    const service = cluster.service()
    const endpoints = ['host-a', 'host-b', 'host-c']
    service.put({ type: 'NodePort', ports: BOTH_PROTOCOLS.map((port) => ({ ...port, targetPort: HOST_PORT })), endpoints })
    for (const [, proto] of HTTP_AND_UDP) {
      await cluster.reaches([...SHELLS, ...HOSTS], ways(service, family, proto), endpoints)
      await cluster.reaches('client', service.on('a', family, proto), endpoints)
    }
  })
}

/** Those that upstream has in the first family only. */
export function firstFamilyTests(cluster: Cluster, family: Family): void {
  test('should function for multiple endpoint-Services with same selector', async () => {
    const [first, second] = [netserver(cluster), netserver(cluster)]
    for (const [, proto] of HTTP_AND_UDP) await cluster.reaches(PODS, [...ways(first, family, proto), ...ways(second, family, proto)], PODS)
    first.remove()
    for (const [, proto] of HTTP_AND_UDP) {
      await cluster.fails(PODS, ways(first, family, proto))
      await cluster.reaches(PODS, ways(second, family, proto), PODS)
    }
  })

  for (const [name, proto] of [
    ['should update nodePort: http [Slow]', 'tcp'],
    ['should update nodePort: udp [Slow]', 'udp'],
  ] as const)
    test(name, async () => {
      const service = netserver(cluster)
      const old = NODES.map((node) => service.on(node, family, proto))
      const others = old.map((endpoint) => ({ ...endpoint, port: endpoint.port + 5 }))
      await cluster.reaches(['client', ...SHELLS], old, PODS)
      service.put({ ports: BOTH_PROTOCOLS.map((port) => ({ ...port, nodePort: service.nodePort + 5 })) })
      await cluster.reaches(['client', ...SHELLS], others, PODS)
      await cluster.refuses(['client', ...SHELLS], old)
      service.put({ type: 'ClusterIP', ports: BOTH_PROTOCOLS })
      await cluster.refuses(['client', ...SHELLS], [...old, ...others])
      await cluster.reaches(SHELLS, service.at(family, proto), PODS)
    })

  test('should support basic nodePort: udp functionality', async () => {
    const service = netserver(cluster)
    const to = NODES.map((node) => service.on(node, family, 'udp'))
    await cluster.reaches(['client', ...SHELLS], to, PODS)
    service.remove()
    await cluster.refuses(['client', ...SHELLS], to)
  })
}

/** Straight to the pods, without a service. */
export function podTests(cluster: Cluster): void {
  const straight = async (from: readonly string[], proto: Proto): Promise<void> => {
    for (const pod of ['a-1', 'a-2', 'b-1', 'b-2', 'c-1'])
      for (const family of [4, 6] as const) await cluster.reaches(from, { proto, address: addressOf(pod, family), port: 8080 }, [pod])
  }
  for (const [name, proto] of HTTP_AND_UDP) {
    test(`should function for intra-pod communication: ${name}`, () => straight([...SHELLS, 'a-1', 'b-2'], proto))
    test(`should function for node-pod communication: ${name} [LinuxOnly]`, () => straight(HOSTS, proto))
  }
}
