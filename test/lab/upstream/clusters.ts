// SPDX-License-Identifier: Apache-2.0
/** What is not about one kind of service: families, slices, settings of the agent, pods that leave, how soon a
 * change is there. Layer: test. */
import { expect, test } from 'vitest'
import { systemClock } from '#lib/base/clock.ts'
import { parseMetrics } from '../../../demo/metrics.ts'
import { waitFor } from '../../../lab/wait.ts'
import { kinds, peers, type Cluster } from '../../../testkit/lab/cluster.ts'
import {
  addressOf,
  clusterObjects,
  ECHOES,
  FAMILIES,
  METRICS_PORT,
  podObject,
  PROTOS,
  type Family,
  type SlicePort,
} from '../../../testkit/lab/manifests.ts'
import { BOTH_PROTOCOLS } from '../../../testkit/lab/test-service.ts'
import { HANG_MS } from '../../../testkit/base/hang.ts'

const SHELLS = ['shell-a', 'shell-b', 'shell-c']
const WEB: readonly SlicePort[] = BOTH_PROTOCOLS.map(({ name, protocol }) => ({ name, protocol, port: 8080 }))

export function dualStackTests(cluster: Cluster): void {
  test('should be able to reach pod on ipv4 and ipv6 ip', async () => {
    for (const pod of ['a-1', 'b-1'])
      for (const family of FAMILIES)
        for (const proto of PROTOS) await cluster.reaches(SHELLS, { proto, address: addressOf(pod, family), port: 8080 }, [pod])
  })

  for (const [name, families] of [
    ['should create service with ipv4 cluster ip', [4]],
    ['should create service with ipv6 cluster ip', [6]],
    ['should create service with ipv4,v6 cluster ip', [4, 6]],
    ['should create service with ipv6,v4 cluster ip', [6, 4]],
  ] as const)
    test(name, async () => {
      const service = cluster.service()
      service.put({ type: 'NodePort', families, endpoints: ['a-1', 'b-1'] })
      for (const family of FAMILIES) {
        const [inside, outside] = [PROTOS.map((proto) => service.at(family, proto)), PROTOS.map((proto) => service.on('a', family, proto))]
        if (has(families, family)) {
          await cluster.reaches(SHELLS, inside, ['a-1', 'b-1'])
          await cluster.reaches('client', outside, ['a-1', 'b-1'])
        } else {
          await cluster.fails('shell-a', inside)
          await cluster.refuses('client', outside)
        }
      }
    })
}

function has(families: readonly Family[], family: Family): boolean {
  return families.includes(family)
}

export function sliceTests(cluster: Cluster): void {
  test('should support a Service with multiple ports specified in multiple EndpointSlices', async () => {
    const service = cluster.service()
    const [first, second] = [8080, 8081].map((targetPort, index) =>
      BOTH_PROTOCOLS.map((port) => ({ ...port, name: `${port.name}-${index}`, port: 80 + index, targetPort })),
    )
    const slices = [first, second].flatMap((ports = [], index) => ({
      ports: ports.map(({ name, protocol, targetPort }) => ({ name, protocol, port: targetPort })),
      endpoints: [index === 0 ? 'a-1' : 'b-1'],
    }))
    service.put({ ports: [...(first ?? []), ...(second ?? [])], slices })
    for (const family of FAMILIES)
      for (const proto of PROTOS) {
        await cluster.reaches(SHELLS, service.at(family, proto, 80), ['a-1'])
        await cluster.reaches(SHELLS, service.at(family, proto, 81), ['b-1'])
      }
  })

  test('should support a Service with multiple endpoint IPs specified in multiple EndpointSlices', async () => {
    const service = cluster.service()
    service.put({
      slices: [
        { ports: WEB, endpoints: ['a-1'] },
        { ports: WEB, endpoints: ['b-1'] },
      ],
    })
    await cluster.reaches(SHELLS, service.everywhere, ['a-1', 'b-1'])
    // a pod that moves from slice to slice is in both for a while
    service.put({
      slices: [
        { ports: WEB, endpoints: ['a-1', 'c-1'] },
        { ports: WEB, endpoints: ['b-1', 'c-1'] },
      ],
    })
    await cluster.reaches(SHELLS, service.everywhere, ['a-1', 'b-1', 'c-1'])
  })
}

export function settingTests(cluster: Cluster): void {
  test('should set TCP CLOSE_WAIT timeout [Privileged]', async () => {
    const service = cluster.service()
    service.put({ type: 'NodePort', endpoints: ['b-1'] })
    // only a flow that both ends have closed may go so soon
    cluster.put('cluster', clusterObjects({ bpfConntrackTimeouts: { tcpFinsSeen: '1s' } }))
    try {
      for (const family of FAMILIES) {
        await cluster.reaches('client', service.on('a', family), ['b-1'])
        const to = `tcp:${family === 4 ? addressOf('node/a', 4) : `[${addressOf('node/a', 6)}]`}:${service.nodePort}`
        // the server closes its half behind this answer
        const halfClosed = { do: 'open', connection: `half-${family}`, to, text: 'GET / HTTP/1.1\r\n\r', timeoutMs: 2000 } as const
        expect(await cluster.order('client', halfClosed)).toMatchObject([{ pod: 'b-1' }])
      }
      await systemClock.sleep(3500, new AbortController().signal)
      for (const family of FAMILIES)
        expect(await cluster.order('client', { do: 'finish', connection: `half-${family}`, timeoutMs: 3000 })).toEqual([{ finished: true }])
    } finally {
      cluster.put('cluster', clusterObjects())
    }
  })
}

export function metricTests(cluster: Cluster): void {
  test('should update metric for tracking accepted packets destined for localhost nodeports', async () => {
    const service = cluster.service()
    const count = async (): Promise<number> => {
      const page = await cluster.lab.agents.get({ node: 'a', port: METRICS_PORT, path: '/metrics' })
      return parseMetrics(page.text).get('netplane_packets_total{event="connect"}') ?? 0
    }
    service.put({ type: 'NodePort', endpoints: ['a-1', 'b-1'] })
    const to = { ...service.on('a', 4), address: '127.0.0.1' }
    await cluster.reaches('node/a', to, ['a-1', 'b-1'])
    const before = await count()
    await cluster.reaches('node/a', to, ['a-1', 'b-1'])
    await expect.poll(count).toBeGreaterThanOrEqual(before + 20)
  })
}

export function podLifeTests(cluster: Cluster): void {
  /** Its manifest says that it is to go; its endpoints have left. */
  const terminate = (pod: string): void => {
    const deletion = { deletionTimestamp: '2026-01-01T00:00:00Z', deletionGracePeriodSeconds: 300 }
    const leaving = podObject(pod, { metadata: deletion })
    const others = clusterObjects().filter((object) => !JSON.stringify(object).includes(`"name":"${pod}"`))
    cluster.put('cluster', [...others, leaving])
  }
  /** Every node has taken in all manifests up to now. */
  const taken = async (): Promise<void> => {
    const marker = cluster.service()
    marker.put({ endpoints: ['c-1'] })
    await cluster.reaches(SHELLS, marker.everywhere, ['c-1'])
  }
  const straight = (pod: string) =>
    FAMILIES.flatMap((family) => PROTOS.map((proto) => ({ proto, address: addressOf(pod, family), port: 8080 })))

  test('should be able to connect from a Pod to a terminating Pod', async () => {
    terminate('b-2')
    await taken()
    await cluster.reaches([...SHELLS, 'b-1'], straight('b-2'), ['b-2'])
    cluster.put('cluster', clusterObjects())
  })

  test('should be able to connect to other Pod from a terminating Pod', async () => {
    terminate('b-2')
    await taken()
    for (const pod of ['a-1', 'b-1']) await cluster.reaches('b-2', straight(pod), [pod])
    const service = cluster.service()
    service.put({ endpoints: ['a-1', 'b-1'] })
    await cluster.reaches('b-2', service.everywhere, ['a-1', 'b-1'])
    cluster.put('cluster', clusterObjects())
  })
}

export function noSnatTests(cluster: Cluster): void {
  test('Should be able to send traffic between Pods without SNAT', async () => {
    for (const from of ECHOES)
      for (const pod of ECHOES.filter((other) => other !== from))
        for (const family of FAMILIES)
          for (const proto of PROTOS) {
            const answers = await cluster.answers({
              from,
              to: { proto, address: addressOf(pod, family), port: 8080 },
              pods: [pod],
              count: 1,
            })
            expect(peers(answers), `${from} to ${pod}`).toEqual([addressOf(from, family)])
          }
  })
}

export function rangeTests(cluster: Cluster): void {
  test('should create Services and serve on different Service CIDRs', async () => {
    const ranges = [
      ['10.96.0.200', 'fd00:96::200'],
      ['10.196.7.200', 'fd00:196::200'],
      ['192.168.200.200', 'fd00:2:200::200'],
    ]
    for (const [v4 = '', v6 = ''] of ranges) {
      const service = cluster.service()
      service.put({ endpoints: ['a-1', 'b-1'], more: { clusterIP: v4, clusterIPs: [v4, v6] } })
      const to = [v4, v6].flatMap((address) => PROTOS.map((proto) => ({ proto, address, port: 80 })))
      await cluster.reaches([...SHELLS, 'node/a'], to, ['a-1', 'b-1'])
    }
  })
}

export function latencyTests(cluster: Cluster): void {
  test('should not be very high', async () => {
    const times: number[] = []
    for (let round = 0; round < 20; round++) {
      const service = cluster.service()
      const began = systemClock.now()
      service.put({ endpoints: ['b-1'] })
      const there = async (): Promise<true | undefined> =>
        kinds(await cluster.ask('shell-a', service.at(4, 'udp'), { timeoutMs: 50 }))[0] === 'b-1' ? true : undefined
      expect(await waitFor(there, { timeoutMs: HANG_MS, everyMs: 1 })).toBe(true)
      times.push(systemClock.now() - began)
    }
    times.sort((a, b) => a - b)
    expect(times[10], `ms: ${times.join(' ')}`).toBeLessThan(200)
    expect(times[18], `ms: ${times.join(' ')}`).toBeLessThan(1000)
  })
}
