// SPDX-License-Identifier: Apache-2.0
/** Where the flow table says that a client's packets go. Layer: test. */
import { expect, test } from 'vitest'
import { ANY_V6, parseAddr, type Protocol } from '#lib/base/ip.ts'
import { destinationReader, type FlowEnd } from '#agent/dataplane/conntrack/destination.ts'
import { encodeBytes } from '#agent/maps/byte-rows.ts'
import { catalogue } from '#agent/maps/catalogue.ts'
import { flowKey } from '#agent/maps/flow-key.ts'
import { bindDeclared } from '../../../support/compiled.ts'
import { FakeMap } from '../../../support/fakes/fake-map.ts'
import { FLOW_BYTES, flowTypes, PROTO } from '../../../support/flow-entries.ts'
import { NOT_JUDGED } from '../../../support/flow-value.ts'

const LEG_NAT = 2
const codecs = bindDeclared(catalogue.np_ct, flowTypes)

function end(addr: string, port: number): FlowEnd {
  return { addr: parseAddr(addr), port }
}

/** As programs enter a UDP flow that this client's packets begin; `toEndpoint`: they leave for that. */
function tableWith(from: FlowEnd, to: FlowEnd, toEndpoint?: FlowEnd) {
  const map = new FakeMap({ name: 'np_ct', keySize: FLOW_BYTES.key, valueSize: FLOW_BYTES.value, maxEntries: 4 })
  const tuple = { src: from.addr, sport: from.port, dst: to.addr, dport: to.port }
  const [key, direction] = flowKey(tuple, { proto: PROTO.udp, lane: 0 })
  const leg = { ifindex: 0, mtu: 1500, flags: 0, ack: 0, window: 0, wscale: 0, hook: 0, bytes: 0, packets: 0, met: 0 }
  const sent = { ...leg, flags: toEndpoint === undefined ? 0 : LEG_NAT }
  const out = { ...tuple, ...(toEndpoint && { dst: toEndpoint.addr, dport: toEndpoint.port }) }
  const value = { seen: 1, out, state: 1, lane: 0, via: ANY_V6, leg: direction === 0 ? [sent, leg] : [leg, sent], slot: 0, ...NOT_JUDGED }
  map.update(encodeBytes(codecs.key, key), encodeBytes(codecs.value, value))
  return destinationReader(map, flowTypes)
}

const ENDPOINT = end('10.1.2.3', 9000)

test.each([
  ['10.9.0.7', '10.96.0.1'],
  ['10.96.0.7', '10.9.0.1'],
  ['fd00::7', 'fd00:96::1'],
])('packets of %s to the service %s go to the endpoint of their flow, whichever end sorts first', (client, service) => {
  const [from, to] = [end(client, 40_000), end(service, 53)]
  const destinationOf = tableWith(from, to, ENDPOINT)
  expect(destinationOf({ from, to, protocol: 'UDP' })).toEqual(ENDPOINT)
})

test('packets that are not translated go where their client sends them', () => {
  const [from, to] = [end('10.9.0.7', 40_000), ENDPOINT]
  expect(tableWith(from, to)({ from, to, protocol: 'UDP' })).toEqual(ENDPOINT)
})

test('another port and another protocol are another flow', () => {
  const [from, to] = [end('10.9.0.7', 40_000), end('10.96.0.1', 53)]
  const destinationOf = tableWith(from, to, ENDPOINT)
  const asked = (change: { from?: FlowEnd; protocol?: Protocol }) => destinationOf({ from, to, protocol: 'UDP', ...change })
  expect([asked({ from: end('10.9.0.7', 40_001) }), asked({ protocol: 'TCP' })]).toEqual([undefined, undefined])
})
