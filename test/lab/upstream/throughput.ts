// SPDX-License-Identifier: Apache-2.0
/** How much goes through: between pods, and through the tunnel beside the direct way; and in fragments. Layer: test. */
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { packageRoot } from '#lib/base/os/package.ts'
import { median } from '../../../bench/base/statistics.ts'
import { Traffic } from '../../../bench/path/traffic.ts'
import type { Endpoint } from '../../../lab/tools/address.ts'
import type { Cluster } from '../../../testkit/lab/cluster.ts'
import { addressOf, FAMILIES, type Family, type NodeName } from '../../../testkit/lab/manifests.ts'
import { BOTH_PROTOCOLS, type PortSpec } from '../../../testkit/lab/test-service.ts'

const TOOL = `${packageRoot()}/bench/tools/traffic`
const SERVER_PORT = 5001
/** Bytes for each way and family. */
const WANTED = 1e9
const TURN_MS = 200
/** What one turn says depends on which processor the kernel took for it, by a factor of two; the median of so many
 * does not. */
const FEWEST_TURNS = 11
const MOST_TURNS = 100

/** Bits a second of one TCP stream by each way: medians of turns, so that all meet the same machine, until each has
 * brought the wanted bytes. */
async function rates(traffic: Traffic, ways: readonly Endpoint[]): Promise<number[]> {
  const seen = ways.map((): number[] => [])
  const bytes = (rates: readonly number[]): number => rates.reduce((sum, rate) => sum + (rate * TURN_MS) / 8000, 0)
  for (let turn = 0; turn < MOST_TURNS && (turn < FEWEST_TURNS || seen.some((rates) => bytes(rates) < WANTED)); turn++)
    for (const [index, { address, port }] of ways.entries()) {
      const answer = await traffic.run({ verb: 'tput', address, port, ms: TURN_MS, clientCpu: 0, serverCpu: 1 })
      seen[index]?.push(answer.bits_per_second ?? 0)
    }
  for (const [index, rates] of seen.entries()) expect(bytes(rates), `bytes by ${ways[index]?.address ?? ''}`).toBeGreaterThanOrEqual(WANTED)
  return seen.map(median)
}

/** The traffic tool answers in the pod while `body` runs, and drives from the place. */
async function withTraffic(
  cluster: Cluster,
  ends: { readonly pod: string; readonly from: string },
  body: (traffic: Traffic) => Promise<void>,
): Promise<void> {
  const server = cluster.lab.spawn(ends.pod, [TOOL, 'serve', String(SERVER_PORT)], ['ignore', 'pipe', 'inherit'])
  const traffic = new Traffic(cluster.lab.spawn(ends.from, [TOOL, 'drive'], ['pipe', 'pipe', 'inherit']), `from ${ends.from}`)
  try {
    if (server.stdout !== null) await once(server.stdout, 'data')
    await body(traffic)
  } finally {
    traffic.close()
    server.kill()
    await once(server, 'close')
  }
}

export function iperfTests(cluster: Cluster): void {
  test('should run iperf2', async () => {
    await withTraffic(cluster, { pod: 'b-1', from: 'shell-a' }, async (traffic) => {
      const ways = FAMILIES.map((family): Endpoint => ({ proto: 'tcp', address: addressOf('b-1', family), port: SERVER_PORT }))
      for (const rate of await rates(traffic, ways)) expect(rate).toBeGreaterThan(1e9)
    })
  })
}

export function tunnelTests(cluster: Cluster): void {
  test('a 1 GB transfer through the tunnel at no less than half the direct rate', async () => {
    const service = cluster.service()
    const bulk: PortSpec = { name: 'bulk', protocol: 'TCP', port: 81, targetPort: SERVER_PORT }
    service.put({ type: 'NodePort', ports: [...BOTH_PROTOCOLS, bulk], endpoints: ['b-1'] })
    await cluster.reaches('client', [...service.onEvery('a'), ...service.onEvery('b')], ['b-1'])
    const by = (node: NodeName, family: Family): Endpoint => ({ ...service.on(node, family), port: service.nodePort + 1 })
    await withTraffic(cluster, { pod: 'b-1', from: 'client' }, async (traffic) => {
      for (const family of FAMILIES) {
        // by the node that has the pod, and by another one: only the way differs
        const [direct = 0, tunnelled = 0] = await rates(traffic, [by('b', family), by('a', family)])
        const text = `IPv${family}: ${Math.round(tunnelled / 1e6)} of ${Math.round(direct / 1e6)} Mbit/s`
        expect(tunnelled / direct, text).toBeGreaterThanOrEqual(0.5)
      }
    })
  })
}

export function fragmentTests(cluster: Cluster): void {
  test('fragments of both families through a NodePort of another node', async () => {
    const service = cluster.service()
    service.put({ type: 'NodePort', endpoints: ['b-1'] })
    const to = FAMILIES.map((family) => service.on('a', family, 'udp'))
    await cluster.reaches(['client', 'far'], to, ['b-1'])
    for (const bytes of [1460, 3000, 20_000])
      await cluster.answers({ from: ['client', 'far'], to, pods: ['b-1'], payload: bytes, reply: bytes, count: 8 })
  })
}
