// SPDX-License-Identifier: Apache-2.0
/** When a flow is over: the programs and the agent, which counts and sweeps flows, say the same of every state of an
 * entry. Layer: test. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ifindexOf, monotonicNs } from '#native'
import { FlowReader, type FlowTimeouts } from '#agent/dataplane/conntrack/reader.ts'
import { catalogue } from '#agent/maps/catalogue.ts'
import type { CtKey, CtValue, NodeCfg } from '#agent/maps/shapes.ts'
import { encodeBytes } from '#agent/maps/byte-rows.ts'
import { ADDR_LOCAL_POD } from '#lib/base/bpf-constants.ts'
import { ANY_V6, parseAddr } from '#lib/base/ip.ts'
import { STATE } from '../support/flow-entries.ts'
import { loadObject, program, TestMap, type Loaded } from '../../testkit/packets/objects.ts'
import { icmp, tcp, udp } from '../../testkit/packets/packet.ts'
import { setUpNamespace, testCfg } from '../../testkit/packets/runner.ts'
import { at, families } from '../../testkit/packets/cluster.ts'
import { addrInfo } from '../../testkit/packets/addr-info.ts'
import { NOT_JUDGED } from '../support/flow-value.ts'

const [v4] = families
const POD = v4?.pod ?? ''
const CLIENT = v4?.client ?? ''
const PORT = 40_000
const ECHO = 8
/** all different, and short: a VM may not have been up for long */
const TIMES: FlowTimeouts = { tcpSyn: 900, tcpOpen: 2000, tcpFin: 1200, tcpRst: 600, udp: 700, udpStream: 1500, icmp: 400 }
/** far more than a program takes to run on a busy machine, and less than times differ */
const MARGIN_MS = 90
/** every bit of the state, up to that of flows of another proxy */
const STATES = Array.from({ length: 2 * STATE.foreign }, (_, bits) => bits)
/** tells an entry that was there before the packet from one made for it */
const MARK = 77

const PROTOCOLS = [
  ['TCP', 6, tcp(at(POD, PORT), at(CLIENT, PORT), { flags: 'A' })],
  ['UDP', 17, udp(at(POD, PORT), at(CLIENT, PORT))],
  ['ICMP', 1, icmp(POD, CLIENT, { type: ECHO, word: PORT * 0x10000 })],
] as const

let loaded: Loaded
let table: TestMap<CtKey, CtValue>

beforeAll(async () => {
  setUpNamespace()
  const cfg: NodeCfg = {
    ...testCfg({ redirectPeer: true, redirectNeigh: true, coarseClock: false, jiffies: false, netnsCookies: true }),
    timeout_tcp_syn: TIMES.tcpSyn,
    timeout_tcp_open: TIMES.tcpOpen,
    timeout_tcp_fin: TIMES.tcpFin,
    timeout_tcp_rst: TIMES.tcpRst,
    timeout_udp: TIMES.udp,
    timeout_udp_stream: TIMES.udpStream,
    timeout_icmp: TIMES.icmp,
  }
  loaded = await loadObject('tc', { cfg })
  table = new TestMap(loaded, catalogue.np_ct)
  new TestMap(loaded, catalogue.np_addrs).set(parseAddr(POD), addrInfo(ADDR_LOCAL_POD, { ifindex: ifindexOf('lo') }))
})
afterAll(() => {
  loaded.object.close()
})

function entry(state: number, seen: number): CtValue {
  const leg = { ifindex: 0, mtu: 0, flags: 0, ack: 0, window: 0, wscale: 0, hook: 0, bytes: 0, packets: 0, met: 0 }
  const out = { src: ANY_V6, dst: ANY_V6, sport: 0, dport: 0 }
  return { seen, out, state, lane: 0, via: ANY_V6, leg: [leg, leg], slot: MARK, ...NOT_JUDGED }
}

interface Aged {
  readonly key: CtKey
  readonly state: number
  readonly age: number
  readonly packet: Uint8Array
}

/** What the agent says of an entry of this age, and what the program does with it. The program runs a little later:
 * where the machine was so busy that the agent says something else by then, they are asked once more. */
function bothSay(reader: FlowReader, { key, state, age, packet }: Aged): { readonly agent: string; readonly programs: string } {
  const said = (isOver: boolean): string => (isOver ? 'is over' : 'goes on')
  for (;;) {
    const now = monotonicNs() / 1e6
    const value = entry(state, now - age)
    const bytes = { keys: encodeBytes(table.codecs.key, key), values: encodeBytes(table.codecs.value, value) }
    const agent = (at: number): string => said(reader.read(bytes, 0, at).expiredMs > 0)
    table.set(key, value)
    program(loaded, 'from_workload').testRun({ data: packet })
    const later = monotonicNs() / 1e6
    if (agent(now) === agent(later)) return { agent: agent(now), programs: said(table.get(key)?.slot !== MARK) }
  }
}

test.each(PROTOCOLS)('%s: programs and agent agree, before and after', (_, proto, packet) => {
  const reader = new FlowReader(loaded.btf, TIMES)
  const key: CtKey = { lo: parseAddr(POD), hi: parseAddr(CLIENT), lo_port: PORT, hi_port: PORT, proto, lane: 0 }
  for (const state of STATES)
    for (const timeout of Object.values(TIMES))
      for (const late of [-MARGIN_MS, MARGIN_MS]) {
        const { agent, programs } = bothSay(reader, { key, state, age: timeout + late, packet })
        expect(programs, `state ${state}, ${timeout + late} ms old`).toBe(agent)
      }
})

test('datagrams both ways are over sooner where another proxy has them: the kernel keeps those that are an exchange no longer', () => {
  const reader = new FlowReader(loaded.btf, TIMES)
  const [, proto, packet] = PROTOCOLS[1]
  const key: CtKey = { lo: parseAddr(POD), hi: parseAddr(CLIENT), lo_port: PORT, hi_port: PORT, proto, lane: 0 }
  const both = STATE.seenLo | STATE.seenHi
  const over = { agent: 'is over', programs: 'is over' }
  const goesOn = { agent: 'goes on', programs: 'goes on' }
  const age = TIMES.udp + MARGIN_MS
  expect(bothSay(reader, { key, state: both | STATE.foreign, age, packet })).toEqual(over)
  expect(bothSay(reader, { key, state: both, age, packet })).toEqual(goesOn)
})
