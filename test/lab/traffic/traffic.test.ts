// SPDX-License-Identifier: Apache-2.0
/** The traffic tools count what is lost: with losses made on purpose, so that a count of zero means something. Root. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startCapture } from '../../../lab/traffic/capture.ts'
import { Lab } from '../../../lab/lab.ts'
import { toolCommand } from '../../../lab/paths.ts'
import { request, startFlow, startRequests } from '../../../lab/traffic/traffic.ts'
import type { Endpoint } from '../../../lab/tools/address.ts'
import type { FlowResult, StreamResult } from '../../../lab/tools/results.ts'
import { Manifests, TWO_NODES } from '../cluster.ts'
import { receiveDatagrams } from '../datagrams.ts'

const manifests = new Manifests(TWO_NODES)
const UDP: Endpoint = { proto: 'udp', address: '10.31.1.3', port: 8080 }
const TCP: Endpoint = { proto: 'tcp', address: 'fd00:31:1::3', port: 8080 }
let lab: Lab

beforeAll(async () => {
  lab = await Lab.up({ name: 'ttraffic', resources: manifests.dir, plain: true })
})
afterAll(async () => {
  await lab.down()
  manifests[Symbol.dispose]()
})

/** Rules in the way of what node b forwards, with a counter for them named met; gone with `clear`. */
async function inTheWay(...rules: readonly string[]): Promise<void> {
  const chain = 'add chain inet test forward { type filter hook forward priority 0; }'
  await lab.mustRun('node/b', ['nft', '-f', '-'], {
    input: ['add table inet test', 'add counter inet test met', chain, ...rules.map((rule) => `add rule inet test forward ${rule}`)].join(
      '\n',
    ),
  })
}

/** How many packets the rules counted: read after they are gone, so that none is missed. */
async function clear(): Promise<number> {
  await lab.mustRun('node/b', ['nft', 'flush', 'chain', 'inet', 'test', 'forward'])
  const packets = await counted()
  await lab.mustRun('node/b', ['nft', 'delete', 'table', 'inet', 'test'])
  return packets
}

async function counted(): Promise<number> {
  const text = await lab.mustRun('node/b', ['nft', 'list', 'counter', 'inet', 'test', 'met'])
  return Number(/packets (\d+)/.exec(text)?.[1])
}

function stream(result: FlowResult, proto: string): StreamResult {
  const found = result.streams.find((candidate) => candidate.stream.startsWith(proto))
  if (found === undefined) throw new Error(`no ${proto} stream`)
  return found
}

/** Waits until the rule in the way has met so many packets. */
async function met(count: number): Promise<void> {
  await expect.poll(counted, { message: 'packets met' }).toBeGreaterThanOrEqual(count)
}

/** Waits for a TCP connection of this place. */
async function connected(place: string): Promise<void> {
  const connections = (): Promise<string> => lab.mustRun(place, ['ss', '-Hnt', 'state', 'established'])
  await expect.poll(connections, { timeout: 20_000, message: 'a connection' }).not.toBe('')
}

describe('a steady flow', () => {
  test('loses nothing on a whole network', async () => {
    const flow = await startFlow(lab, { from: 'one', to: [UDP, TCP] })
    await receiveDatagrams(lab, 'one', 200)
    const result = await flow.stop()
    for (const one of result.streams) {
      expect(one).toMatchObject({
        lost: 0,
        received: one.sent,
        duplicates: 0,
        outOfOrder: 0,
        reconnects: 0,
        errors: {},
        pods: { three: one.sent },
      })
      expect(one.peers).toHaveLength(1)
      expect(one.sent).toBeGreaterThan(150)
    }
    expect(result.socketDrops).toBe(0)
  })

  test('counts exactly the datagrams that were dropped, while TCP sends again', async () => {
    const flow = await startFlow(lab, { from: 'one', to: [UDP, TCP] })
    await inTheWay('meta l4proto udp numgen inc mod 20 0 counter name met drop')
    await met(10)
    const dropped = await clear()
    const result = await flow.stop()
    expect(dropped).toBeGreaterThanOrEqual(10)
    expect(stream(result, 'udp')).toMatchObject({ lost: dropped, reconnects: 0 })
    expect(stream(result, 'tcp')).toMatchObject({ lost: 0, reconnects: 0 })
  })

  test('sees a gap', async () => {
    const flow = await startFlow(lab, { from: 'one', to: [UDP] })
    await inTheWay('meta l4proto udp counter name met drop')
    // one message every 5 ms
    await met(80)
    const dropped = await clear()
    await receiveDatagrams(lab, 'one', 10)
    const { lost, longestGapMs } = stream(await flow.stop(), 'udp')
    expect(lost).toBe(dropped)
    expect(longestGapMs).toBeGreaterThanOrEqual(350)
  })

  test('counts a broken connection and what was lost with it', async () => {
    const flow = await startFlow(lab, { from: 'one', to: [TCP] })
    const syn = 'tcp flags & (syn | ack) == syn'
    await inTheWay(`${syn} counter name met reject with tcp reset`, 'meta l4proto tcp reject with tcp reset')
    await met(1)
    await clear()
    await connected('one')
    const tcp = stream(await flow.stop(), 'tcp')
    expect(tcp.reconnects).toBeGreaterThan(0)
    expect(tcp.lost).toBeGreaterThan(0)
    expect(tcp.errors['ECONNRESET']).toBeGreaterThan(0)
  })
})

describe('one socket a request', () => {
  test('answers, with big ones whole', async () => {
    const result = await request(lab, { from: 'one', to: TCP, count: 20, rate: 200, payload: 5000, reply: 200_000 })
    expect(result).toMatchObject({ ok: 20, refused: 0, reset: 0, timeouts: 0, errors: {}, pods: { three: 20 } })
    expect(result.answers[0]).toMatchObject({ pod: 'three', local: '[fd00:31:1::3]:8080', bytes: 4999 })
    expect(result.answers[0]?.peer).toMatch(/^\[fd00:31::1\]:\d+$/)
  })
  test('is refused by a port without a listener', async () => {
    expect(await request(lab, { from: 'one', to: { ...TCP, port: 81 }, count: 5 })).toMatchObject({ ok: 0, refused: 5, latencyMs: null })
    expect(await request(lab, { from: 'one', to: { ...UDP, port: 81 }, count: 5 })).toMatchObject({ ok: 0, refused: 5 })
  })
  test('no answer', async () => {
    await inTheWay('meta l4proto { tcp, udp } drop')
    try {
      for (const to of [UDP, TCP])
        expect(await request(lab, { from: 'one', to, count: 3, timeoutMs: 200 })).toMatchObject({ ok: 0, timeouts: 3 })
    } finally {
      await clear()
    }
  })
  test('until stopped', async () => {
    const requests = startRequests(lab, { from: 'two', to: UDP, count: 0, rate: 200 })
    await requests.event('started', 5000)
    await receiveDatagrams(lab, 'two', 60)
    const result = await requests.stop()
    expect(result.ok).toBeGreaterThan(50)
    expect(result).toMatchObject({ timeouts: 0, refused: 0 })
  })
})

describe('a second connection from the port of a first', () => {
  const collide = async (...flags: readonly string[]): Promise<unknown> => {
    const to = ['--direct', 'tcp:10.31.1.3:8080', '--service', 'tcp:[fd00:31:1::3]:8080', '--tries', '2']
    return JSON.parse(await lab.mustRun('one', [...toolCommand('port-collision'), ...to, ...flags]))
  }

  test.each(['--keep-open', '--other-port'])('loses nothing on a whole network, %s', async (flag) => {
    expect(await collide(flag)).toMatchObject({ tries: 2, answered: 2, lostSyns: 0, errors: {} })
  })

  test('counts exactly the SYNs that were dropped', async () => {
    const syn = 'meta nfproto ipv6 tcp flags & (syn | ack) == syn'
    await inTheWay(`${syn} numgen inc mod 2 0 counter name met drop`)
    const result = await collide('--first-port', '21000')
    expect(await clear()).toBe(2)
    expect(result).toMatchObject({ tries: 2, answered: 2, lostSyns: 2 })
  })
})

test('a flow that never comes about is an error that says so', async () => {
  await expect(startFlow(lab, { from: 'one', to: [{ ...TCP, port: 81 }], drainMs: 0, establishMs: 500 })).rejects.toThrow(
    /not established after 500 ms: .*ECONNREFUSED/,
  )
})

test('a capture shows what passed', async () => {
  const capture = await startCapture(lab, { place: 'fabric', device: 'br0', filter: 'udp port 8080' })
  await request(lab, { from: 'one', to: UDP })
  const lines = await capture.stop(2)
  expect(lines.filter((line) => /IP 10\.31\.0\.1\.\d+ > 10\.31\.1\.3\.8080: UDP/.test(line)).length).toBeGreaterThan(0)
})
