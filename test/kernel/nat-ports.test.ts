// SPDX-License-Identifier: Apache-2.0
/** Source ports of flows that leave with the node's address: each client has a share, and the port that was free for
 * longest comes first. Layer: test. */
import { afterEach, beforeAll, expect, test } from 'vitest'
import { SOURCE_ANY } from '#lib/base/bpf-constants.ts'
import { tcp, udp } from '../../testkit/packets/packet.ts'
import { NAT_PORT, NODE_PORT, at, families, type Family } from '../../testkit/packets/cluster.ts'
import { packetRunner, setUpNamespace, type Features, type PacketRunner } from '../../testkit/packets/runner.ts'

const FEATURES: Features = { redirectPeer: true, redirectNeigh: true, coarseClock: true, jiffies: true, netnsCookies: true }
const COUNT = 400
/** what one client may have of them */
const SHARE = (COUNT / 4) * 3
const runners: PacketRunner[] = []

beforeAll(() => setUpNamespace())
afterEach(() => {
  for (const runner of runners.splice(0)) runner.close()
})

/** The service's endpoint is outside: who asks the node port reaches it with the node's address. */
async function node(f: Family): Promise<PacketRunner> {
  const runner = await packetRunner(FEATURES, [], { nat_port_count: COUNT, source_check: SOURCE_ANY })
  runners.push(runner)
  runner.run({ name: 'given', given: { backends: [{ addr: f.stranger, port: 8080 }] }, steps: [] })
  return runner
}

/** The port with which the client's packet leaves; undefined: it is dropped. */
function leavesBy(runner: PacketRunner, f: Family, how: { readonly from: string; readonly proto?: 'tcp' | 'udp' }): number | undefined {
  const front = at(f.node, NODE_PORT)
  const packet = how.proto === 'udp' ? udp(how.from, front) : tcp(how.from, front, { flags: 'S' })
  const { action, out } = runner.pass('from_host', packet)
  return action === 'redirect' ? new DataView(out.buffer, out.byteOffset).getUint16(14 + (f.v4 ? 20 : 40)) : undefined
}

const outside = (f: Family, net: number, host = 9) => (f.v4 ? `203.0.${net}.${host}` : `2001:db8:${net}::${host}`)

test.each(families)('$name: a client that asks for all ports of a destination leaves others a part of theirs', async (f) => {
  for (const proto of ['tcp', 'udp'] as const) {
    const runner = await node(f)
    const ports = Array.from({ length: 2000 }, (_, index) => leavesBy(runner, f, { from: at(outside(f, 1), 2000 + index), proto }))
    const got = ports.filter((port) => port !== undefined)
    expect(got.length).toBeGreaterThan(SHARE * 0.9)
    expect(got.length).toBeLessThanOrEqual(SHARE)
    expect(new Set(got).size).toBe(got.length)
    expect(got.filter((port) => port < NAT_PORT || port >= NAT_PORT + COUNT)).toEqual([])
    const others = Array.from({ length: 20 }, (_, index) => leavesBy(runner, f, { from: at(outside(f, 2 + index), 2000), proto }))
    expect(others).not.toContain(undefined)
  }
})

test('IPv6: all addresses of a /64 are one client', async () => {
  const f = families[1] ?? expect.fail()
  const runner = await node(f)
  const ports = Array.from({ length: 2000 }, (_, index) =>
    leavesBy(runner, f, { from: at(outside(f, 1, 1 + (index % 1000)), 2000 + index) }),
  )
  expect(ports.filter((port) => port !== undefined).length).toBeLessThanOrEqual(SHARE)
})

test.each(families)('$name: a TCP port is used again when all others of the client have been', async (f) => {
  const runner = await node(f)
  const last = new Map<number, number>()
  const distances: number[] = []
  for (let turn = 0; turn < 5 * SHARE; turn++) {
    const client = at(outside(f, 1), 2000 + turn)
    const port = leavesBy(runner, f, { from: client }) ?? 0
    // it is over at once: by a time-out it may be 17 ms later, for flows tell in jiffies when they were seen last
    runner.pass('from_host', tcp(client, at(f.node, NODE_PORT), { flags: 'R', seq: 1001 }))
    const before = last.get(port)
    if (before !== undefined) distances.push(turn - before)
    last.set(port, turn)
  }
  expect(last.size).toBe(SHARE)
  expect(new Set(distances)).toEqual(new Set([SHARE]))
})

test.each(families)('$name: ports that others hold are passed over', async (f) => {
  const runner = await node(f)
  const held = Array.from({ length: 200 }, (_, index) => leavesBy(runner, f, { from: at(outside(f, 1), 2000 + index) }))
  const next = Array.from({ length: 50 }, (_, index) => leavesBy(runner, f, { from: at(outside(f, 2), 2000 + index) }))
  expect([...held, ...next]).not.toContain(undefined)
  expect(new Set([...held, ...next]).size).toBe(250)
})
