// SPDX-License-Identifier: Apache-2.0
/** What the agent's flow book takes: a process that is told of new flows and looks at a table of them, as fast as it
 * can. Writes its figure to standard output as JSON. Layer: bench. */
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { BpfObject } from '#native'
import { InternalError } from '#lib/base/errors.ts'
import { addrFromBytes, type Addr } from '#lib/base/ip.ts'
import { packageRoot } from '#lib/base/os/package.ts'
import { FlowBook } from '#agent/flows/book.ts'
import { seenReader } from '#agent/flows/table.ts'
import { enumValue, parseBtf, type Btf } from '#agent/maps/btf.ts'
import { bind, bindKey } from '#agent/maps/codec.ts'
import { flowKey, type CtTuple } from '#agent/maps/flow-key.ts'
import { structLayout } from '#agent/maps/layout.ts'
import { ctKey, ctValue, flowEvent, type CtValue } from '#agent/maps/shapes.ts'
import { viewOf } from '#agent/maps/view.ts'
import type { FlowsFigure } from './result.ts'

/** That begin in ten seconds, at 10,000 a second. */
const FLOWS = 100_000
const [CLIENTS, SERVERS] = [200, 50]
const OPENED = 1
const TCP = 6
const NONE = { type: 'Network', namespace: '-', name: 'pvt', labels: ['app=web', 'tier=front'], pod: '', node: 'n1', owner: '' } as const

function address(third: number, last: number): Addr {
  return addrFromBytes(Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 1, third, last))
}

/** No two alike. */
function tupleOf(index: number): CtTuple {
  const src = address(0, index % CLIENTS)
  return { src, dst: address(1, (index * 7) % SERVERS), sport: 1024 + Math.floor(index / CLIENTS), dport: 8080 }
}

function book(): FlowBook {
  const pod = { kind: 'Pod', namespace: 'shop', name: 'p' } as never
  return new FlowBook({
    ends: { find: (addr) => ({ ...NONE, name: `p${addr.charCodeAt(15)}`, here: pod }), isNodes: () => false },
    meant: { find: () => undefined },
    tracer: () => ({ hits: () => [] }),
    ruleName: () => undefined,
    reasonName: String,
  })
}

/** µs of this process's CPU time for each. */
function timed(each: number, run: () => void): number {
  const before = process.cpuUsage()
  run()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / each
}

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

function heapMb(): number {
  collectGarbage()
  return process.memoryUsage().heapUsed / 1e6
}

function measure(btf: Btf): FlowsFigure {
  const events = eventsIn(btf)
  const entries = entriesIn(btf)
  const codec = bind(flowEvent, structLayout(btf, 'flow_event'))
  const reader = { read: () => ({ expiredMs: -1, proxied: false }) as never }
  const read = seenReader(btf, reader)
  const before = heapMb()
  const flows = book()
  flows.news(0)
  const eventUs = timed(FLOWS, () => {
    const view = viewOf(events)
    for (let at = 0; at < FLOWS; at++) flows.take(codec.decode(view, at * codec.size))
  })
  const entryUs = timed(FLOWS, () => {
    flows.beginLook()
    for (const seen of read(entries, 0)) flows.see(seen)
    flows.endLook()
  })
  const memoryMb = heapMb() - before
  if (flows.size.connections !== FLOWS) throw new InternalError(`${flows.size.connections} of ${FLOWS} flows are known`)
  return { flows: FLOWS, eventUs, entryUs, memoryMb }
}

function eventsIn(btf: Btf): Buffer {
  const codec = bind(flowEvent, structLayout(btf, 'flow_event'))
  const bytes = Buffer.alloc(FLOWS * codec.size)
  const view = viewOf(bytes)
  const rules = { egress_rule: 0, ingress_rule: 5, staged_egress_rule: 0, staged_ingress_rule: 5 }
  const rest = { ...rules, at: 0, device: 1, length: 60, kind: OPENED, reason: 0, proto: TCP, hook: 0, tunnelled: 0, lane: 0 }
  for (let at = 0; at < FLOWS; at++) codec.encode({ ...rest, sent: tupleOf(at), flow: tupleOf(at) }, view, at * codec.size)
  return bytes
}

/** Two directions that have sent something. */
function entriesIn(btf: Btf): { readonly keys: Buffer; readonly values: Buffer; readonly count: number } {
  const [keys, values] = [bindKey(ctKey, structLayout(btf, 'ct_key')), bind(ctValue, structLayout(btf, 'ct_value'))]
  const [keyBytes, valueBytes] = [Buffer.alloc(FLOWS * keys.size), Buffer.alloc(FLOWS * values.size)]
  const answer = enumValue(btf, 'leg_flag', 'LEG_ANSWER')
  const none = values.decode(viewOf(Buffer.alloc(values.size)), 0)
  for (let at = 0; at < FLOWS; at++) {
    const [key, direction] = flowKey(tupleOf(at), { proto: TCP, lane: 0 })
    keys.encode(key, viewOf(keyBytes), at * keys.size)
    const leg = none.leg.map((one, index) => ({ ...one, flags: index === direction ? 0 : answer, packets: 3, bytes: 180 }))
    const value: CtValue = { ...none, ingress_rule: 5, staged_ingress_rule: 5, leg }
    values.encode(value, viewOf(valueBytes), at * values.size)
  }
  return { keys: keyBytes, values: valueBytes, count: FLOWS }
}

const object = BpfObject.open(join(packageRoot(), 'bpf/tc.bpf.o'))
try {
  process.stdout.write(JSON.stringify([measure(parseBtf(object.btf()))]))
} finally {
  object.close()
}
