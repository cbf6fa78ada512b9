// SPDX-License-Identifier: Apache-2.0
/** Which UDP flows are kept from the rules of a kube-proxy, and until when. Layer: test. */
import { beforeEach, expect, test } from 'vitest'
import type { FlowTable } from '#agent/dataplane/conntrack/gc.ts'
import { clientReader } from '#agent/dataplane/conntrack/client.ts'
import { FlowReader } from '#agent/dataplane/conntrack/reader.ts'
import { KeptFlows } from '#agent/dataplane/kube-proxy/kept-flows.ts'
import { encodeBytes } from '#agent/maps/byte-rows.ts'
import { catalogue } from '#agent/maps/catalogue.ts'
import { flowKey, reversed, type CtTuple } from '#agent/maps/flow-key.ts'
import { ANY_V6, parseAddr, type Addr } from '#lib/base/ip.ts'
import { silentLog } from '#lib/obs/log.ts'
import { bindDeclared } from '../../../support/compiled.ts'
import { FakeClock } from '../../../support/fakes/fake-clock.ts'
import { FakeMap } from '../../../support/fakes/fake-map.ts'
import { FLOW_BYTES, flowTypes, PROTO, STATE, TIMEOUTS, type FlowSpec } from '../../../support/flow-entries.ts'
import { NOT_JUDGED } from '../../../support/flow-value.ts'

const [LEG_NAT, LEG_ANSWER] = [2, 256]
const NODE = parseAddr('192.0.2.1')
const SERVICE = parseAddr('10.96.0.10')
const POD = parseAddr('10.244.0.7')
const NODE6 = parseAddr('fd00::1')
const POD6 = parseAddr('fd00:244::7')
const SERVICE6 = parseAddr('fd00:96::10')
const codecs = bindDeclared(catalogue.np_ct, flowTypes)
const MINUTE = 60_000

interface Entry {
  readonly proto: number
  readonly state: number
  readonly seen: number
  readonly flags: number
  readonly out: CtTuple
}

/** A node with `nft`, and a flow table. */
class Node {
  readonly clock = new FakeClock()
  readonly written: string[] = []
  readonly events: string[] = []
  readonly map = new FakeMap({ name: 'np_ct', keySize: FLOW_BYTES.key, valueSize: FLOW_BYTES.value, maxEntries: 100 })
  tables = ''
  hasNft = true
  serves = true
  expected = false
  present = false
  readonly #kept: KeptFlows

  constructor() {
    this.clock.advance(TIMEOUTS.udpStream * 2)
    const reader = new FlowReader(flowTypes, TIMEOUTS)
    const table: FlowTable = {
      ...{ map: this.map, reader, destinationOf: () => undefined, clientOf: clientReader(flowTypes), maxEntries: 100 },
      fullAt: () => 0,
    }
    const say = (_: unknown, event: string): void => void this.events.push(event)
    this.#kept = new KeptFlows({
      ...{ clock: this.clock, log: { ...silentLog, info: say, warn: say }, monotonicMs: () => this.clock.now(), table: () => table },
      ...{ serves: () => this.serves, expected: () => this.expected, present: () => this.present },
      isOwn: (addr) => addr === NODE || addr === NODE6,
      run: (command, input) => Promise.resolve(this.#run(command, input)),
    })
  }

  async pass(ms = 200): Promise<void> {
    this.clock.advance(ms)
    await this.#kept.tick()
  }

  /** Both entries of a flow that programs translate: its client's view, and its backend's. */
  translated(tuple: CtTuple, more: Partial<Omit<FlowSpec, 'number'>> = {}): void {
    const { proto = PROTO.udp, state = STATE.seenLo | STATE.seenHi, seen = this.clock.now() } = more
    const out = { ...tuple, dst: tuple.dst === SERVICE6 ? POD6 : POD }
    this.#put(tuple, { proto, state, seen, flags: LEG_NAT, out })
    this.#put(reversed(out), { proto, state, seen, flags: LEG_NAT | LEG_ANSWER, out: reversed(tuple) })
  }

  #put(tuple: CtTuple, { proto, state, seen, flags, out }: Entry): void {
    const [key, direction] = flowKey(tuple, { proto, lane: 0 })
    const leg = { ifindex: 0, mtu: 1500, flags: 0, ack: 0, window: 0, wscale: 0, hook: 0, bytes: 0, packets: 0, met: 0 }
    const legs = direction === 0 ? [{ ...leg, flags }, leg] : [leg, { ...leg, flags }]
    const value = { seen, out, state, lane: 0, via: ANY_V6, leg: legs, slot: 0, ...NOT_JUDGED }
    this.map.update(encodeBytes(codecs.key, key), encodeBytes(codecs.value, value))
  }

  #run(command: readonly string[], input = ''): string | undefined {
    if (!this.hasNft) return undefined
    if (command[1] === 'list') return this.tables
    this.written.push(input)
    return ''
  }
}

function flow(src: Addr, sport: number, dst = SERVICE): CtTuple {
  return { src, sport, dst, dport: 53 }
}

function elements(text = '', map = 'services'): string[] {
  return [...text.matchAll(new RegExp(`${map} \\{ (\\S+ \\. .*) \\}`, 'g'))].flatMap(([, all = '']) => all.split(', '))
}

let node: Node
beforeEach(() => {
  node = new Node()
})

test('flows of the node that programs translate are kept once a kube-proxy is to run: of both families, and no others', async () => {
  node.translated(flow(NODE, 5000))
  node.translated(flow(NODE6, 5001, SERVICE6))
  node.translated(flow(POD, 5002))
  node.translated(flow(NODE, 5003), { proto: PROTO.tcp })
  node.translated(flow(NODE, 5004), { state: STATE.seenLo | STATE.seenHi | STATE.foreign })
  node.translated(flow(NODE, 5005), { seen: node.clock.now() - 2500 })
  await node.pass()
  expect(node.written).toEqual([])
  node.expected = true
  await node.pass()
  expect(elements(node.written[0])).toEqual([
    '192.0.2.1 . 5000 . 10.96.0.10 . 53 : 10.96.0.10',
    'fd00::1 . 5001 . fd00:96::10 . 53 : fd00:96::10',
  ])
  expect(elements(node.written[0], 'endpoints')).toEqual([
    '192.0.2.1 . 5000 . 10.96.0.10 . 53 : 10.244.0.7',
    'fd00::1 . 5001 . fd00:96::10 . 53 : fd00:244::7',
  ])
})

test('flows that come before kube-proxy has its rules are kept as well, and the kernel is told of changes alone', async () => {
  node.expected = true
  await node.pass()
  expect(node.written).toEqual([])
  node.translated(flow(NODE, 5000))
  for (let turn = 0; turn < 5; turn++) await node.pass()
  expect(node.written).toHaveLength(1)
  node.translated(flow(NODE, 5001))
  await node.pass()
  expect(elements(node.written[1])).toHaveLength(2)
})

test('once kube-proxy has its rules, flows that go on are renewed before the kernel forgets them, until the last is idle', async () => {
  node.expected = true
  node.translated(flow(NODE, 5000))
  await node.pass()
  node.present = true
  await node.pass()
  node.tables = 'table ip netplane-flows\ntable ip6 netplane-flows\n'
  await node.pass(5000)
  expect(node.written).toHaveLength(1)
  node.clock.advance(5000)
  node.translated(flow(NODE, 5000))
  await node.pass()
  expect(node.written).toEqual([node.written[0], node.written[0]])
  await node.pass(MINUTE)
  expect(node.written[2]).toBe('delete table ip netplane-flows\ndelete table ip6 netplane-flows\n')
  const walk = node.map.readChunk.bind(node.map)
  let walks = 0
  node.map.readChunk = (...args) => {
    walks++
    return walk(...args)
  }
  for (let turn = 0; turn < 3; turn++) await node.pass(MINUTE)
  expect(walks).toBe(0)
})

test('a kube-proxy that goes and comes again within the minute finds the flows of now kept', async () => {
  node.expected = true
  node.present = true
  node.translated(flow(NODE, 5000))
  await node.pass()
  node.expected = false
  node.tables = 'table ip netplane-flows\n'
  await node.pass()
  expect(node.written[1]).toBe('delete table ip netplane-flows\n')
  node.translated(flow(NODE, 5001))
  node.expected = true
  node.present = false
  await node.pass()
  expect(elements(node.written[2])).toHaveLength(2)
})

test('what an agent before has told the kernel goes where no kube-proxy is to run, once that is known', async () => {
  node.tables = 'table ip netplane-flows\n'
  node.serves = false
  await node.pass()
  expect(node.written).toEqual([])
  node.serves = true
  await node.pass()
  expect(node.written).toEqual(['delete table ip netplane-flows\n'])
})

test('a node without nft keeps no flow, and its log says so once', async () => {
  node.hasNft = false
  node.expected = true
  node.translated(flow(NODE, 5000))
  for (let turn = 0; turn < 3; turn++) await node.pass()
  expect(node.events).toEqual(['flows.not-kept'])
})
