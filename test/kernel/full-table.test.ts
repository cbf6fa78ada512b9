// SPDX-License-Identifier: Apache-2.0
/** A flow table that is full: which flows make room for new ones, and which never do. Layer: test. */
import { execFileSync } from 'node:child_process'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { monotonicNs, type BpfProgram } from '#native'
import { parseAddr } from '#lib/base/ip.ts'
import { counterSlots, counterTotal } from '#agent/maps/counters.ts'
import { catalogue } from '#agent/maps/catalogue.ts'
import { flowKey } from '#agent/maps/flow-key.ts'
import type { CtKey, CtValue } from '#agent/maps/shapes.ts'
import { loadObject, program, sharedMaps, TestMap, type Loaded } from '../../testkit/packets/objects.ts'
import { tcp, tunnel, udp } from '../../testkit/packets/packet.ts'
import { setUpNamespace, testCfg } from '../../testkit/packets/runner.ts'
import { at, families, NODE_PORT, VNI, type Family } from '../../testkit/packets/cluster.ts'
import { fill, openMaps, type Maps } from '../../testkit/packets/case-maps.ts'
import { Random } from '../../soak/random.ts'
import { PROTO, STATE } from '../support/flow-entries.ts'
import { SEED } from '../support/steady/seed.ts'

const ROOM = 1024
const ANSWERED = STATE.seenLo | STATE.seenHi
/** longer than programs go without a closer look */
const IDLE_MS = 2000
const SERVERS = 250
const DNS = 53

let loaded: Loaded
let maps: Maps
let table: TestMap<CtKey, CtValue>
let fromPod: BpfProgram
let fromHost: BpfProgram

beforeAll(async () => {
  setUpNamespace()
  // each CPU takes slots of np_recent by the block: on another one the oldest keys are not those entered first
  execFileSync('taskset', ['--all-tasks', '--cpu-list', '--pid', '0', String(process.pid)])
  const features = { redirectPeer: true, redirectNeigh: true, coarseClock: false, jiffies: true, netnsCookies: true }
  const cfg = { ...testCfg(features), host_policy: 0, untracked: 0, nat_port_count: 1000, recent_mask: ROOM / 2 - 1 }
  loaded = await loadObject('tc', { cfg, conntrack: ROOM })
  maps = openMaps(loaded)
  table = new TestMap(loaded, catalogue.np_ct)
  fromPod = program(loaded, 'from_workload')
  fromHost = program(loaded, 'from_host')
})
afterAll(() => {
  for (const map of sharedMaps(loaded.object).values()) map.close()
  loaded.object.close()
})
beforeEach(() => {
  fill(maps, { backends: families.map(({ pod }) => ({ addr: pod, port: 8080 })) })
})

const send = (packet: Uint8Array): number => fromPod.testRun({ data: packet }).retval
const DROP = 2
const counter = (name: string): number => counterTotal(loaded.object.map('np_counters'), counterSlots(loaded.btf).get(name) ?? -1)

/** The other pod's answers, so that both ends have sent packets. */
function open(f: Family, port: number): void {
  send(tcp(at(f.secondPod, port), at(f.vip, 80), { flags: 'S' }))
  send(tcp(at(f.pod, 8080), at(f.secondPod, port), { flags: 'SA', ack: 1001 }))
  send(tcp(at(f.secondPod, port), at(f.vip, 80), { flags: 'A', seq: 1001, ack: 1001 }))
}

/** From a port of the pod to an address outside, which does not answer. */
function oneWayEnds(f: Family, number: number): { readonly port: number; readonly server: string } {
  const server = f.v4 ? `198.51.100.${number % SERVERS}` : `2001:db8:99::${(number % SERVERS).toString(16)}`
  return { port: 1024 + Math.floor(number / SERVERS), server }
}

function oneWay(f: Family, number: number): number {
  const { port, server } = oneWayEnds(f, number)
  return send(udp(at(f.secondPod, port), at(server, DNS)))
}

function oneWayKey(f: Family, number: number): CtKey {
  const { port, server } = oneWayEnds(f, number)
  const tuple = { src: parseAddr(f.secondPod), dst: parseAddr(server), sport: port, dport: DNS }
  return flowKey(tuple, { proto: PROTO.udp, lane: 0 })[0]
}

/** What another node has got for a pod of this one, which is to answer by itself (DSR). The packet for the pod. */
function fromNode(f: Family, node: string, inner: Uint8Array): Buffer {
  const { dataOut } = fromHost.testRun({ data: tunnel(node, f.node, { inner, vni: VNI, sport: 50_000, origin: at(node, NODE_PORT) }) })
  return Buffer.from(dataOut)
}

/** Each entry has been idle for so long. */
function age(ms: number, which: (value: CtValue) => boolean = () => true): void {
  for (const [key, value] of table.now()) if (which(value)) table.set(key, { ...value, seen: monotonicNs() / 1e6 - ms })
}

const isOpen = ({ state }: CtValue): boolean => (state & ANSWERED) === ANSWERED
const openEntries = (): number => table.now().filter(([, value]) => isOpen(value)).length

describe.each(families)('$name', (f) => {
  test('idle connections outlive twenty tables of flows that one pod sends one way, and those find room', () => {
    for (let port = 0; port < 20; port++) open(f, 40_000 + port)
    expect(openEntries()).toBe(40)
    age(60_000, isOpen)
    const before = [counter('DROP_FLOW_INSERT'), counter('COUNT_EVICTED')]
    for (let number = 0; number < 20 * ROOM; number++) expect(oneWay(f, number)).not.toBe(DROP)
    expect(openEntries()).toBe(40)
    expect(counter('DROP_FLOW_INSERT')).toBe(before[0])
    expect(counter('COUNT_EVICTED') - (before[1] ?? 0)).toBeGreaterThan(18 * ROOM)
  })

  test('a connection that begins while the table is full has room for both entries, and they stay once it is answered', () => {
    for (let number = 0; number < 2 * ROOM; number++) oneWay(f, number)
    for (let port = 0; port < 20; port++) open(f, 41_000 + port)
    for (let number = 0; number < 2 * ROOM; number++) oneWay(f, number)
    expect(openEntries()).toBe(40)
  })

  test('connections whose clients never acknowledge the answer make room, idle ones that are open do not', () => {
    for (let port = 0; port < 20; port++) open(f, 43_000 + port)
    age(60_000, isOpen)
    const half = (port: number): void => {
      send(tcp(at(f.secondPod, port), at(f.vip, 80), { flags: 'S' }))
      send(tcp(at(f.pod, 8080), at(f.secondPod, port), { flags: 'SA', ack: 1001 }))
    }
    for (let number = 0; number < 20 * ROOM; number++) half(1024 + number)
    expect(table.now().filter(([{ lo_port, hi_port }]) => Math.max(lo_port, hi_port) >= 43_000)).toHaveLength(40)
  })

  test('a connection that is not answered goes with both of its entries', () => {
    const views = (): number[] => [80, 8080].map((port) => table.now().filter(([key]) => [key.lo_port, key.hi_port].includes(port)).length)
    for (let number = 0; number < ROOM - 100; number++) oneWay(f, 3 * ROOM + number)
    for (let port = 0; port < 20; port++) send(tcp(at(f.secondPod, 42_000 + port), at(f.vip, 80), { flags: 'S' }))
    expect(views()).toEqual([20, 20])
    for (let number = 0; number < 2 * ROOM; number++) oneWay(f, number)
    const [clients = 20, backends] = views()
    // one that makes room for two flows has the next one's place in np_recent written over
    expect(clients).toBeLessThanOrEqual(10)
    expect(backends).toBe(clients)
  })

  test('of a table full of answered connections the one that has been idle longest makes room, of those entered first', () => {
    for (let number = 0; number < ROOM / 2; number++) open(f, 10_000 + number)
    expect(openEntries()).toBe(ROOM)
    const of = (port: number) => table.now().filter(([{ lo_port, hi_port }]) => [lo_port, hi_port].includes(port))
    age(IDLE_MS)
    for (const [key, value] of of(10_020)) table.set(key, { ...value, seen: value.seen - 10 * IDLE_MS })
    const before = counter('DROP_FLOW_INSERT')
    expect(oneWay(f, 1)).not.toBe(DROP)
    expect([of(10_020), openEntries()]).toEqual([[], ROOM - 2])
    expect(counter('DROP_FLOW_INSERT')).toBe(before)
  })

  test('connections that are all answered find room four times over, in a table that is full of such', () => {
    for (let number = 0; number < ROOM / 2; number++) open(f, 10_000 + number)
    age(IDLE_MS)
    const before = [counter('DROP_FLOW_INSERT'), counter('COUNT_EVICTED')]
    for (let number = 0; number < 4 * ROOM; number++) open(f, 20_000 + number)
    expect(counter('DROP_FLOW_INSERT')).toBe(before[0])
    expect(counter('COUNT_EVICTED') - (before[1] ?? 0)).toBeGreaterThan(3.9 * ROOM)
    expect(openEntries()).toBe(ROOM)
  })

  test('flows with one entry and with two, in any order, find room many tables over, whether they are answered or not', () => {
    const random = new Random(SEED)
    const before = counter('DROP_FLOW_INSERT')
    // a flow that no slot has makes no room: one in a thousand would be most of the table in the end
    for (const [answered, tables] of [
      [true, 20],
      [false, 100],
    ] as const)
      for (let number = 0; number < tables * ROOM; number++) {
        const two = random.next() < 0.5
        const [client, server] = [at(f.secondPod, 20_000 + (number % 40_000)), two ? at(f.vip, 80) : at(f.pod, 8080)]
        send(tcp(client, server, { flags: 'S' }))
        if (!answered) continue
        send(tcp(at(f.pod, 8080), client, { flags: 'SA', ack: 1001 }))
        send(tcp(client, server, { flags: 'A', seq: 1001, ack: 1001 }))
      }
    expect(counter('DROP_FLOW_INSERT')).toBe(before)
  })

  test('a flow that comes again once it was deleted is entered, also where its key of before is the oldest', () => {
    for (let number = 0; number < 2 * ROOM; number++) oneWay(f, number)
    for (let number = 2 * ROOM - ROOM / 2; number < 2 * ROOM; number++) {
      const key = oneWayKey(f, number)
      expect(table.delete(key)).toBe(true)
      oneWay(f, number)
      expect(table.get(key)).toBeDefined()
    }
  })

  test('a connection to a service has both of its entries, also where a key of its former life is among the oldest', () => {
    const client = at(f.secondPod, 50_000)
    const pressure = new TestMap(loaded, catalogue.np_pressure)
    const entries = () => table.now().filter(([{ lo_port, hi_port }]) => [lo_port, hi_port].includes(50_000))
    for (let later = ROOM / 2 - 8; later < ROOM / 2 + 4; later++) {
      table.empty()
      pressure.set(0, { full_at: 0, blocks: 0 })
      for (let number = 0; number < 2 * ROOM; number++) oneWay(f, number)
      send(tcp(client, at(f.vip, 80), { flags: 'S' }))
      for (let number = 0; number < later; number++) oneWay(f, 3 * ROOM + number)
      // others have the room that it leaves
      for (const [number, [key, value]] of entries().entries()) {
        table.delete(key)
        table.set({ ...key, lo_port: 60_000 + number, hi_port: 9 }, value)
      }
      expect(send(tcp(client, at(f.vip, 80), { flags: 'S' }))).not.toBe(DROP)
      expect(entries()).toHaveLength(2)
    }
    pressure.map.close()
  })

  test('connections that two nodes send from one client’s port, and that end here, are both open and outlive a flood', () => {
    const [client, backend] = [at(f.directClient, 40_000), at(f.pod, 8080)]
    const nodes = [f.otherNode, f.thirdNode].map((node) => {
      const sent = fromNode(f, node, tcp(client, backend, { flags: 'S' }))
      const from = at(f.directClient, sent.readUInt16BE(f.v4 ? 34 : 54))
      expect(send(tcp(backend, from, { flags: 'SA', ack: 1001 }))).not.toBe(DROP)
      fromNode(f, node, tcp(client, backend, { flags: 'A', seq: 1001, ack: 1001 }))
      return from
    })
    expect(nodes[0]).toBe(client)
    expect(nodes[1]).not.toBe(client)
    // the second one's are of what comes and of what the backend sees
    const open = (): number => table.now().filter(([, { state }]) => state & STATE.open).length
    expect(open()).toBe(3)
    for (let number = 0; number < 3 * ROOM; number++) oneWay(f, number)
    expect(open()).toBe(3)
  })

  test('what has ended makes room before what is idle', () => {
    for (let number = 0; number < ROOM / 2; number++) open(f, 10_000 + number)
    age(IDLE_MS)
    const last = ({ lo_port, hi_port }: CtKey): boolean => [lo_port, hi_port].includes(10_005)
    for (const [key, value] of table.now()) if (last(key)) table.set(key, { ...value, state: value.state | STATE.rst })
    const before = counter('COUNT_EVICTED')
    // what found room by itself does not count
    for (let number = 0; number < 8 && counter('COUNT_EVICTED') === before; number++) oneWay(f, number)
    expect(table.now().filter(([key]) => last(key))).toEqual([])
  })

  test('programs say that the table is full, which wakes the agent', () => {
    const pressure = new TestMap(loaded, catalogue.np_pressure)
    pressure.set(0, { full_at: 0, blocks: 0 })
    for (let number = 0; number < ROOM; number++) oneWay(f, number)
    expect(pressure.get(0)?.full_at).toBe(0)
    oneWay(f, ROOM)
    expect(pressure.get(0)?.full_at).toBeGreaterThan(0)
    pressure.map.close()
  })
})
