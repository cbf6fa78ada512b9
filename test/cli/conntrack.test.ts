// SPDX-License-Identifier: Apache-2.0
/** bpf conntrack: each flow once, from its entries. Layer: test. */
import { describe, expect, test } from 'vitest'
import { ANY_V6, parseAddr } from '#lib/base/ip.ts'
import { enumValue } from '#agent/maps/btf.ts'
import { catalogue } from '#agent/maps/catalogue.ts'
import { flowKey, type CtTuple } from '#agent/maps/flow-key.ts'
import type { CtValue } from '#agent/maps/shapes.ts'
import { FakeTables } from '../support/fakes/fake-tables.ts'
import { flowTypes, PROTO, STATE } from '../support/flow-entries.ts'
import { answer, NOW_MS } from './answer.ts'
import { NOT_JUDGED } from '../support/flow-value.ts'

/** "ready nat pod" and the interface */
type LegText = readonly [flags: string, ifindex?: number]

interface EntryText {
  readonly proto?: number
  /** as the side that began it sends, in this entry's view: "10.0.0.1 1 10.0.0.2 2" */
  readonly sent: string
  readonly out?: string
  readonly there: LegText
  readonly back: LegText
  readonly via?: string
  readonly state?: number
  readonly seen?: number
  /** egress, ingress, and the same with the staged policies */
  readonly rules?: readonly [number, number, number, number]
}

function tuple(text: string): CtTuple {
  const [src = '', sport, dst = '', dport] = text.split(' ')
  return { src: parseAddr(src), sport: Number(sport), dst: parseAddr(dst), dport: Number(dport) }
}

function put(tables: FakeTables, entry: EntryText): void {
  const {
    proto = PROTO.tcp,
    sent,
    out,
    there,
    back,
    via,
    state = STATE.seenLo | STATE.seenHi | STATE.open,
    seen = 1500,
    rules = [0, 0, 0, 0],
  } = entry
  const [key, direction] = flowKey(tuple(sent), { proto, lane: 0 })
  const legs = [leg(there), leg(back)] as const
  const value: CtValue = {
    seen: NOW_MS - seen,
    out: out === undefined ? { src: ANY_V6, dst: ANY_V6, sport: 0, dport: 0 } : tuple(out),
    state,
    lane: 0,
    via: via === undefined ? ANY_V6 : parseAddr(via),
    leg: direction === 0 ? legs : [legs[1], legs[0]],
    slot: 0,
    ...NOT_JUDGED,
    egress_rule: rules[0],
    ingress_rule: rules[1],
    staged_egress_rule: rules[2],
    staged_ingress_rule: rules[3],
  }
  tables.put(catalogue.np_ct, [key, value])
}

function leg([words, ifindex = 0]: LegText): CtValue['leg'][number] {
  const flags = words
    .split(' ')
    .map((word) => enumValue(flowTypes, 'leg_flag', `LEG_${word.toUpperCase()}`))
    .reduce((all, flag) => all | flag, 0)
  return { ifindex, mtu: 1500, flags, ack: 0, window: 0, wscale: 0, hook: 0, bytes: 0, packets: 0, met: 0 }
}

/** One flow of each shape. */
function someFlows(): FakeTables {
  const tables = new FakeTables()
  put(tables, { sent: '10.1.1.5 40000 10.1.1.6 80', there: ['ready pod', 7], back: ['ready pod answer', 5], seen: 0 })
  put(tables, { sent: '10.1.1.5 40001 10.1.2.9 80', there: ['ready neigh', 2], back: ['answer', 5], state: STATE.seenLo })
  // to a node port, the backend on another node: two entries
  const client = '192.168.50.100 5000 192.0.2.1 30080'
  const behind = '192.168.50.100 5000 10.1.2.5 8080'
  put(tables, { sent: client, out: behind, there: ['ready nat encap neigh', 2], back: ['answer'], via: '192.0.2.2', seen: 4000 })
  put(tables, { sent: behind, out: back(client), there: ['inner', 2], back: ['ready nat answer neigh', 2], seen: 900 })
  // masqueraded, IPv6, UDP
  const inner = 'fd00:10::5 4000 2001:db8::53 53'
  const outer = 'fd00::1 20000 2001:db8::53 53'
  const udp = { proto: PROTO.udp, state: STATE.seenLo | STATE.seenHi }
  put(tables, { ...udp, sent: inner, out: outer, there: ['ready nat neigh', 2], back: ['answer'] })
  put(tables, { ...udp, sent: outer, out: back(inner), there: ['inner'], back: ['ready nat answer pod', 7] })
  // at the backend's node with DSR: only answers are changed
  put(tables, {
    sent: '192.168.50.101 5001 10.1.1.5 8080',
    out: '192.0.2.2 30080 192.168.50.101 5001',
    there: ['ready pod tunnelled', 7],
    back: ['nat answer'],
    via: '192.0.2.2',
  })
  // a client that has moved to another backend: its old one's entry is on its own, and so is its new one
  const moved = '10.1.1.5 5002 10.96.0.53 53'
  put(tables, { ...udp, sent: moved, out: '10.1.1.5 5002 10.1.1.8 53', there: ['ready nat pod', 8], back: ['answer'] })
  put(tables, { ...udp, sent: '10.1.1.5 5002 10.1.1.7 53', out: back(moved), there: ['inner', 7], back: ['ready nat answer pod', 5] })
  put(tables, {
    proto: PROTO.icmp,
    sent: '10.1.1.5 77 192.0.2.9 77',
    there: ['ready stack self'],
    back: ['answer'],
    state: STATE.seenLo,
    seen: 4e6,
  })
  put(tables, {
    sent: '10.1.1.5 40002 10.1.2.9 80',
    there: ['ready stack'],
    back: ['ready stack answer'],
    state: 64 | STATE.seenLo | STATE.open,
  })
  return tables
}

/** As the answer leaves. */
function back(sent: string): string {
  const [src = '', sport = '', dst = '', dport = ''] = sent.split(' ')
  return [dst, dport, src, sport].join(' ')
}

describe('bpf conntrack', () => {
  test('each flow once', async () => {
    expect(await answer('bpf conntrack', someFlows())).toMatchInlineSnapshot(`
      "PROTO  STATE    AGE   FROM                 TO                 TRANSLATION                   THERE             BACK        RULES  STAGED  FLAGS
      TCP    open     0.0s  10.1.1.5:40000       10.1.1.6:80        -                             pod if7           pod if5     -      -       -
      UDP    two-way  1.5s  10.1.1.5:5002        10.1.1.7:53        answers from 10.96.0.53:53    undecided         pod if5     -      -       half
      TCP    opening  1.5s  10.1.1.5:40001       10.1.2.9:80        -                             device if2        undecided   -      -       -
      TCP    open     1.5s  10.1.1.5:40002       10.1.2.9:80        -                             stack             stack       -      -       foreign
      UDP    two-way  1.5s  10.1.1.5:5002        10.96.0.53:53      to 10.1.1.8:53                pod if8           undecided   -      -       half
      ICMP   other    1h6m  10.1.1.5:77          192.0.2.9:77       -                             stack             undecided   -      -       self
      TCP    open     1.5s  192.168.50.101:5001  10.1.1.5:8080      answers from 192.0.2.2:30080  pod if7           undecided   -      -       tunnelled
      TCP    open     0.9s  192.168.50.100:5000  192.0.2.1:30080    to 10.1.2.5:8080              tunnel 192.0.2.2  device if2  -      -       -
      UDP    two-way  1.5s  [fd00:10::5]:4000    [2001:db8::53]:53  from [fd00::1]:20000          device if2        pod if7     -      -       -
      "
    `)
  })

  test.each([
    ['--addr 10.1.2.5', 1],
    ['--addr 10.1.1.5 --proto udp', 2],
    ['--addr 10.1.1.0/24 --port 8080', 1],
    // of the same end
    ['--addr 10.1.1.5 --port 80', 0],
    ['--port 20000', 1],
    ['--proto icmp', 1],
    ['--proto 6', 5],
  ])('%s', async (filter, flows) => {
    expect(JSON.parse(await answer(`bpf conntrack --json ${filter}`, someFlows()))).toHaveLength(flows)
  })

  test('the rules that let flows be, by name where it is known; with the staged policies where those are others', async () => {
    const tables = new FakeTables()
    put(tables, { sent: '10.1.1.5 40000 10.1.1.6 80', there: ['ready pod', 7], back: ['answer'], rules: [11, 12, 11, 12] })
    put(tables, { sent: '10.1.1.5 40001 10.1.1.6 80', there: ['ready pod', 7], back: ['answer'], rules: [0, 12, 13, 12] })
    const names = { nameOf: (number: number) => (number === 12 ? 'NetworkPolicy/shop/db ingress 0' : undefined), missing: undefined }
    expect(await answer('bpf conntrack', tables, names)).toMatchInlineSnapshot(`
      "PROTO  STATE  AGE   FROM            TO           TRANSLATION  THERE    BACK       RULES                                            STAGED       FLAGS
      TCP    open   1.5s  10.1.1.5:40000  10.1.1.6:80  -            pod if7  undecided  out rule 11, in NetworkPolicy/shop/db ingress 0  -            -
      TCP    open   1.5s  10.1.1.5:40001  10.1.1.6:80  -            pod if7  undecided  in NetworkPolicy/shop/db ingress 0               out rule 13  -
      "
    `)
  })

  test('as JSON', async () => {
    expect(await answer('bpf conntrack --json --port 30080 --addr 192.0.2.1', someFlows())).toMatchInlineSnapshot(`
      "[
      {"proto":"TCP","state":"open","ageMs":900,"from":{"address":"192.168.50.100","port":5000},"to":{"address":"192.0.2.1","port":30080},"translated":{"from":{"address":"192.168.50.100","port":5000},"to":{"address":"10.1.2.5","port":8080}},"answersAs":null,"there":{"by":"tunnel","interface":"if2","node":"192.0.2.2","flags":["ready","nat","neigh","encap"]},"back":{"by":"device","interface":"if2","node":null,"flags":["ready","nat","neigh","answer"]},"rules":{"egress":null,"ingress":null,"stagedEgress":null,"stagedIngress":null},"flags":["seen-lo","seen-hi","tcp-open"],"half":false}
      ]
      "
    `)
  })
})
