// SPDX-License-Identifier: Apache-2.0
/** A client that stays with its endpoint: by cluster address and by node port, until its time is over. Layer: test. */
import { expect, test } from 'vitest'
import { systemClock } from '#lib/base/clock.ts'
import type { Endpoint } from '../../../lab/tools/address.ts'
import { kinds, type Cluster } from '../../../testkit/lab/cluster.ts'
import type { TestService } from '../../../testkit/lab/test-service.ts'

const PODS = ['a-1', 'b-1', 'c-1']
const TIMEOUT_S = 2

interface Way {
  readonly name: string
  readonly from: string
  readonly type: 'ClusterIP' | 'NodePort'
  readonly to: (service: TestService) => Endpoint[]
}

const BY_CLUSTER_IP: Way = { name: 'service with type clusterIP', from: 'shell-a', type: 'ClusterIP', to: (service) => service.everywhere }
const BY_NODE_PORT: Way = { name: 'NodePort service', from: 'client', type: 'NodePort', to: (service) => service.onEvery('a') }

function clientIP(timeoutSeconds: number): object {
  return { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds } } }
}

export function affinityTests(cluster: Cluster): void {
  for (const way of [BY_CLUSTER_IP, BY_NODE_PORT]) {
    test(`should have session affinity work for ${way.name} [LinuxOnly]`, async () => {
      const service = cluster.service()
      service.put({ type: way.type, endpoints: PODS, more: { ...clientIP(10800) } })
      for (const to of way.to(service)) await cluster.sticks(way.from, to)
    })

    test(`should have session affinity timeout work for ${way.name} [LinuxOnly]`, async () => {
      const service = cluster.service()
      service.put({ type: way.type, endpoints: PODS, more: { ...clientIP(TIMEOUT_S) } })
      await Promise.all(way.to(service).map((to) => forgets(cluster, way.from, to)))
    })

    test(`should be able to switch session affinity for ${way.name} [LinuxOnly]`, async () => {
      const service = cluster.service()
      service.put({ type: way.type, endpoints: PODS })
      await cluster.reaches(way.from, way.to(service), PODS)
      service.put({ more: { ...clientIP(10800) } })
      for (const to of way.to(service)) await cluster.sticks(way.from, to)
      service.put({ more: { sessionAffinity: 'None' } })
      await cluster.reaches(way.from, way.to(service), PODS)
    })
  }
}

/** Each use starts the time again; without one for longer, any pod may be next: one in three times it is the same. */
async function forgets(cluster: Cluster, from: string, to: Endpoint): Promise<void> {
  const pod = await staysWhileUsed(cluster, from, to)
  const next: string[] = []
  while (next.length < 9 && !next.some((other) => other !== pod)) {
    await wait(TIMEOUT_S * 1000 + 300)
    next.push((await use(cluster, from, to)).pod)
  }
  expect(new Set(next), 'pods after the time-out').not.toEqual(new Set([pod]))
}

/** Uses it for longer than the time-out, each time within it; begins again when a busy machine was too late for
 * that. */
async function staysWhileUsed(cluster: Cluster, from: string, to: Endpoint): Promise<string> {
  await cluster.sticks(from, to)
  let last = await use(cluster, from, to)
  for (let times = 0; times < 4; times++) {
    await wait(TIMEOUT_S * 600)
    const next = await use(cluster, from, to)
    if (next.end - last.start >= TIMEOUT_S * 1000) return staysWhileUsed(cluster, from, to)
    expect(next.pod).toBe(last.pod)
    last = next
  }
  return last.pod
}

/** One question; it reached the node at some time between `start` and `end`. */
async function use(cluster: Cluster, from: string, to: Endpoint): Promise<{ start: number; end: number; pod: string }> {
  const start = systemClock.now()
  const pod = kinds(await cluster.ask(from, to)).join()
  return { start, end: systemClock.now(), pod }
}

async function wait(ms: number): Promise<void> {
  await systemClock.sleep(ms, new AbortController().signal)
}
