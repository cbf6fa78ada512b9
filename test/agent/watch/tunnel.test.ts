// SPDX-License-Identifier: Apache-2.0
/** Whom a node asks about the tunnel, and what it makes of what it hears. Layer: test. */
import { describe, expect, test } from 'vitest'
import { sha256Start } from '#lib/base/hash.ts'
import { parseAddr, parsePort, type Port } from '#lib/base/ip.ts'
import { Health } from '#lib/obs/health.ts'
import type { Node } from '#lib/model/node.ts'
import { peersOf } from '#agent/watch/tunnel/peers.ts'
import { decodeProbe, encodeProbe, KINDS, type Kind, type Probe } from '#agent/watch/tunnel/probe-packet.ts'
import { hear, lostOf, missesOf, type Heard } from '#agent/watch/tunnel/judge.ts'
import { TUNNEL_ARRIVES, TunnelProbe, type TunnelWire } from '#agent/watch/tunnel/probe.ts'
import { FakeClock } from '../../support/fakes/fake-clock.ts'
import { ListLog } from '../../support/fakes/list-log.ts'

const PORT = parsePort(4789)

function nodeOf(name: string, ...addresses: readonly string[]): Node {
  const none = { podCIDRs: [], subnets: [], labels: new Map(), zone: undefined }
  return { kind: 'Node', namespace: '', name, addresses: addresses.map(parseAddr), ...none }
}

function nodesOf(...nodes: readonly Node[]): ReadonlyMap<string, Node> {
  return new Map(nodes.map((node) => [node.name, node]))
}

describe('peers', () => {
  const many = (count: number): ReadonlyMap<string, Node> =>
    nodesOf(
      ...Array.from({ length: count }, (_, at) => nodeOf(`n${String(at).padStart(4, '0')}`, `10.0.${at >> 8}.${at & 255}`, `fd00::${at}`)),
    )

  test('few nodes all ask each other, of many each asks eight that ask it', () => {
    for (const [count, asked] of [
      [1, 0],
      [2, 1],
      [3, 2],
      [9, 8],
      [10, 8],
      [100, 8],
    ] as const) {
      const nodes = many(count)
      const names = (node: string): Set<string> => new Set(peersOf(node, nodes).map(({ name }) => name))
      for (const node of nodes.keys()) {
        const peers = names(node)
        expect(peers.size).toBe(asked)
        expect(peers.has(node)).toBe(false)
        for (const peer of peers) expect(names(peer).has(node)).toBe(true)
      }
    }
  })

  test('a peer is asked at its first address of each family that both have; a node without one is passed over', () => {
    const nodes = nodesOf(nodeOf('a', '10.0.0.1', '10.0.0.9'), nodeOf('b', 'fd00::2', '10.0.0.2'), nodeOf('c', 'fd00::3'), nodeOf('d'))
    const [source, address] = [parseAddr('10.0.0.1'), parseAddr('10.0.0.2')]
    expect(peersOf('a', nodes)).toEqual([{ name: 'b', family: 'IPv4', source, address }])
    expect(peersOf('d', nodes)).toEqual([])
    expect(peersOf('e', nodes)).toEqual([])
  })
})

const PROBE: Probe = {
  ...{ kind: 'plain', from: sha256Start('a'), to: sha256Start('b'), run: sha256Start('1'), round: 7, size: 1500 },
  misses: ['large', 'summed'],
}

describe('packets', () => {
  const ends = (source: string, address: string) => ({
    ...{ source: parseAddr(source), address: parseAddr(address), sourcePort: 50_000, port: PORT, hasChecksums: false },
  })
  const PAIRS = [ends('10.0.0.1', '10.0.0.2'), ends('fd00::1', 'fd00::2')] as const

  /** As the tap gives it. */
  function delivered(packet: Buffer, source: string): Buffer {
    const v4 = !source.includes(':')
    const header = Buffer.alloc(v4 ? 24 : 40)
    header[0] = v4 ? 0x46 : 0x60
    if (v4) header.set(source.split('.').map(Number), 12)
    else header.set([0xfd, ...Array.from({ length: 14 }, () => 0), 1], 8)
    return Buffer.concat([header, packet]).subarray(0, 256)
  }

  test('what is written is read, of each kind and family', () => {
    for (const kind of KINDS) {
      for (const pair of PAIRS) {
        const probe = { ...PROBE, kind }
        const source = pair === PAIRS[0] ? '10.0.0.1' : 'fd00::1'
        expect(decodeProbe(delivered(encodeProbe(probe, pair), source))).toEqual({ probe, source: pair.source })
      }
    }
    expect(decodeProbe(Buffer.alloc(100, 0x45))).toBeUndefined()
    expect(decodeProbe(Buffer.alloc(3))).toBeUndefined()
  })

  test('the large one fills the MTU, with its IP header', () => {
    expect(PAIRS.map((pair) => encodeProbe({ ...PROBE, kind: 'large' }, pair).length)).toEqual([1480, 1460])
  })

  test('one kind has the right checksum in any case, the others as the tunnel’s packets', () => {
    for (const pair of PAIRS) {
      const sumOf = (kind: Kind, hasChecksums: boolean): number => {
        const packet = encodeProbe({ ...PROBE, kind }, { ...pair, hasChecksums })
        return packet.readUInt16BE(6) === 0 ? 0 : sumWith(packet, pair === PAIRS[0] ? [10, 0, 0, 1, 10, 0, 0, 2] : [...V6(1), ...V6(2)])
      }
      expect(KINDS.map((kind) => sumOf(kind, false))).toEqual([0, 0, 0xffff])
      expect(KINDS.map((kind) => sumOf(kind, true))).toEqual([0xffff, 0xffff, 0xffff])
    }
  })

  const V6 = (last: number): number[] => [0xfd, ...Array.from({ length: 14 }, () => 0), last]

  /** All ones where the checksum is right. */
  function sumWith(packet: Buffer, addresses: readonly number[]): number {
    const whole = Buffer.concat([Buffer.from(addresses), Buffer.from([0, 17, packet.length >> 8, packet.length & 255]), packet])
    let sum = 0
    for (let at = 0; at < whole.length; at += 2) sum += whole.readUInt16BE(at)
    while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16)
    return sum
  }
})

describe('judgement', () => {
  function after(rounds: readonly (readonly Kind[])[], run = PROBE.run): Heard | undefined {
    let heard: Heard | undefined
    for (const [round, kinds] of rounds.entries()) for (const kind of kinds) heard = hear(heard, { ...PROBE, kind, round, run })
    return heard
  }
  const misses = (...rounds: readonly (readonly Kind[])[]): readonly Kind[] => {
    const heard = after(rounds)
    return heard === undefined ? [] : missesOf(heard)
  }
  const SUMMED: readonly Kind[] = ['summed']
  const SMALL: readonly Kind[] = ['plain', 'summed']

  test('a kind is lost after three rounds in a row without it, once these are over', () => {
    expect(misses(KINDS, SUMMED, SUMMED, SUMMED)).toEqual([])
    expect(misses(KINDS, SUMMED, SUMMED, SUMMED, SUMMED)).toEqual(['plain'])
    expect(misses(KINDS, SMALL, SMALL, SMALL, SMALL)).toEqual(['large'])
    expect(misses(SUMMED, SUMMED, KINDS, SUMMED, SUMMED, KINDS)).toEqual([])
  })

  test('a large one says nothing while small ones like it are lost', () => {
    expect(misses(SUMMED, SUMMED, SUMMED, SUMMED, ['plain'])).toEqual([])
    expect(misses(SMALL, SMALL, SUMMED, SMALL)).toEqual([])
  })

  test('one that is heard is lost no more, at once', () => {
    expect(misses(SUMMED, SUMMED, SUMMED, SUMMED, ['plain'])).toEqual([])
    expect(misses(SMALL, SMALL, SMALL, SMALL, ['large'])).toEqual([])
  })

  test('a round without any probe changes no count', () => {
    expect(misses(KINDS, [], [], [], [], KINDS)).toEqual([])
    expect(misses(SUMMED, [], SUMMED, [], SUMMED)).toEqual([])
  })

  test('an agent that starts again goes on where the one before was, and what is late says nothing', () => {
    const before = after([SUMMED, SUMMED, SUMMED, SUMMED])
    const again = hear(before, { ...PROBE, kind: 'summed', round: 0, run: sha256Start('2') })
    expect(missesOf(again)).toEqual(['plain'])
    const now = after([KINDS, KINDS])
    expect(now && hear(now, { ...PROBE, kind: 'plain', round: 0 })).toBe(now)
  })

  test('what is lost follows from what is not', () => {
    expect([[], ['summed'], ['large'], ['plain', 'large'], KINDS].map((misses) => lostOf(misses as Kind[]))).toEqual([
      ...[undefined, undefined, 'large', 'unsummed', 'all'],
    ])
  })
})

type Loses = (from: string, packet: Buffer) => boolean

/** Agents of nodes on one network. */
class Net {
  readonly clock = new FakeClock()
  loses: Loses = () => false
  /** agents that run */
  readonly up = new Set<string>()
  readonly asking = new Set<string>()
  readonly nodes: ReadonlyMap<string, Node>
  readonly #queues = new Map<string, Buffer[]>()
  readonly #probes = new Map<string, TunnelProbe>()
  readonly logs = new Map<string, ListLog>()
  readonly #health = new Map<string, Health>()
  way: { port: Port; hasChecksums: boolean } | undefined = { port: PORT, hasChecksums: false }
  sent = 0

  constructor(count: number) {
    const names = Array.from({ length: count }, (_, at) => String.fromCharCode(97 + at))
    this.nodes = nodesOf(...names.map((name, at) => nodeOf(name, `10.0.0.${at + 1}`)))
    for (const name of names) this.start(name)
  }

  start(name: string): void {
    const [log, health] = [new ListLog(), new Health(() => 0)]
    this.logs.set(name, log)
    this.#health.set(name, health)
    this.#queues.set(name, [])
    this.up.add(name)
    const probe = new TunnelProbe({
      ...{ clock: this.clock, log, health, wire: this.#wire(name), node: name },
      way: () => this.way,
      nodes: () => this.nodes,
      asksToo: (peer) => Promise.resolve(this.up.has(peer.name) && this.asking.has(peer.name)),
      onAsking: (asks) => (asks ? this.asking.add(name) : this.asking.delete(name)),
      random: () => 0.5,
    })
    this.#probes.set(name, probe)
  }

  #wire(name: string): TunnelWire {
    const own = Buffer.from([10, 0, 0, name.charCodeAt(0) - 96])
    return {
      listen: (_, family) => ({
        packets: () => (family === 'IPv4' ? (this.#queues.get(name) ?? []).splice(0) : []),
        [Symbol.dispose]: () => undefined,
      }),
      open: (_, address) => ({
        mtu: 1500,
        send: (packet) => {
          this.sent++
          if (this.loses(name, packet)) return
          const to = String.fromCharCode(96 + address.charCodeAt(15))
          const header = Buffer.alloc(20)
          header[0] = 0x45
          own.copy(header, 12)
          if (this.up.has(to)) this.#queues.get(to)?.push(Buffer.concat([header, packet]))
        },
        [Symbol.dispose]: () => undefined,
      }),
    }
  }

  async pass(seconds: number): Promise<void> {
    for (let second = 0; second < seconds; second++) {
      for (const name of this.up) await this.#probes.get(name)?.tick()
      this.clock.advance(1000)
    }
  }

  said(name: string): string {
    return (
      this.#health
        .get(name)
        ?.report()
        .conditions.find((one) => one.name === TUNNEL_ARRIVES)?.reason ?? ''
    )
  }
}

const isUnsummed: Loses = (_, packet) => packet.readUInt16BE(6) === 0

describe('agents on one network', () => {
  test('where nothing is lost, nothing is said', async () => {
    const net = new Net(3)
    await net.pass(120)
    expect(['a', 'b', 'c'].map((name) => net.said(name))).toEqual(['', '', ''])
  })

  test('both ends say what a network loses, since when and what to do, and that it is over', async () => {
    const net = new Net(2)
    await net.pass(30)
    net.loses = isUnsummed
    await net.pass(25)
    expect(net.said('a')).toBe('')
    await net.pass(35)
    const text = (peer: string): string =>
      `to and from node ${peer} over IPv4: packets of the tunnel without a UDP checksum are lost since 1970-01-01T00:\\d\\d:\\d\\dZ: ` +
      'set bpfTunnelUDPChecksum: Enabled in FelixConfiguration'
    expect(net.said('a')).toMatch(new RegExp(`^${text('b')}$`))
    expect(net.said('b')).toMatch(new RegExp(`^${text('a')}$`))
    net.way = { port: PORT, hasChecksums: true }
    await net.pass(22)
    expect([net.said('a'), net.said('b')]).toEqual(['', ''])
    const log = net.logs.get('a')
    expect(new Set(log?.of('tunnel.loss').map(({ lost }) => lost))).toEqual(new Set(['unsummed']))
    expect(log?.of('tunnel.loss-over')).toEqual([expect.objectContaining({ peer: 'b', family: 'IPv4', lost: 'unsummed' })])
  })

  test('both ends report a loss in one direction', async () => {
    const net = new Net(2)
    net.loses = (from, packet) => from === 'a' && packet.length > 1400
    await net.pass(60)
    expect(net.said('a')).toContain('to node b over IPv4: large packets of the tunnel (1500 bytes) are lost')
    expect(net.said('b')).toContain('from node a over IPv4: large packets of the tunnel (1500 bytes) are lost')
  })

  test('a silent peer has lost all only if its agent sends probes', async () => {
    const net = new Net(3)
    net.loses = (from) => from === 'a'
    net.up.delete('c')
    await net.pass(70)
    expect(net.said('b')).toMatch(/^from node a over IPv4: all packets of the tunnel are lost since .*Z: a firewall .* port 4789$/)
    expect(net.said('a')).toMatch(/^to node b over IPv4: all packets of the tunnel are lost since /)
    net.up.delete('a')
    await net.pass(20)
    expect(net.said('b')).toBe('')
  })

  test('an agent that starts, or was away, is no loss', async () => {
    const net = new Net(2)
    net.up.delete('b')
    await net.pass(120)
    net.start('b')
    for (let second = 0; second < 60; second++) {
      await net.pass(1)
      expect([net.said('a'), net.said('b')]).toEqual(['', ''])
    }
    net.up.delete('b')
    await net.pass(300)
    net.up.add('b')
    for (let second = 0; second < 60; second++) {
      await net.pass(1)
      expect([net.said('a'), net.said('b')]).toEqual(['', ''])
    }
  })

  test('without a tunnel nothing is sent, and a loss is over', async () => {
    const net = new Net(2)
    net.loses = isUnsummed
    await net.pass(90)
    expect(net.said('a')).not.toBe('')
    net.way = undefined
    await net.pass(1)
    const { sent } = net
    await net.pass(60)
    expect([net.said('a'), net.sent - sent, [...net.asking]]).toEqual(['', 0, []])
  })
})
