// SPDX-License-Identifier: Apache-2.0
/** Fragments of datagrams. Layer: test. */
import { udp } from '../../support/packet.ts'
import type { PacketCase } from './case.ts'
import type { Family } from './world.ts'
import { NODE_PORT, at, families } from './world.ts'

const PORT = 41000

function fragments(f: Family): PacketCase[] {
  const c = at(f.client, PORT)
  const payload = new Uint8Array(64).map((_, i) => i)
  const part = (to: string, fragment: { offset: number; more: boolean }, ttl = 64) => udp(c, to, { payload, id: 77, fragment, ttl })
  // the builder cuts the body of the whole datagram at `offset`; the first part is cut short here
  const first = (to: string, ttl = 64) => cut(f, part(to, { offset: 0, more: true }, ttl), 24)
  return [
    {
      name: `${f.name}: fragments of a service's datagram follow the first`,
      given: { backends: [{ addr: f.pod, port: 8080 }] },
      steps: [
        { say: 'first', through: 'from_host', packet: first(at(f.node, NODE_PORT)), action: 'redirect', out: first(at(f.pod, 8080), 63) },
        {
          say: 'last',
          through: 'from_host',
          packet: part(at(f.node, NODE_PORT), { offset: 24, more: false }),
          action: 'redirect',
          out: part(at(f.pod, 8080), { offset: 24, more: false }, 63),
        },
      ],
    },
    {
      name: `${f.name}: a fragment without its first: a pod's is dropped, the host puts its own together`,
      given: { backends: [{ addr: f.pod, port: 8080 }] },
      steps: [
        {
          say: 'to a pod',
          through: 'from_host',
          packet: part(at(f.pod, 9), { offset: 24, more: false }),
          action: 'drop',
          reason: 'DROP_FRAGMENT_UNKNOWN',
        },
        { say: 'to the host', through: 'from_host', packet: part(at(f.node, 9), { offset: 24, more: false }), action: 'pass', out: 'same' },
      ],
    },
    {
      name: `${f.name}: a last fragment of fewer than 8 bytes is as good as any`,
      given: {},
      steps: [
        { say: 'first', through: 'from_host', packet: first(at(f.pod, 9)), action: 'redirect' },
        {
          say: 'last',
          through: 'from_host',
          packet: udp(c, at(f.pod, 9), { payload: payload.subarray(0, 60), id: 77, fragment: { offset: 64, more: false } }),
          action: 'redirect',
          out: udp(c, at(f.pod, 9), { payload: payload.subarray(0, 60), id: 77, fragment: { offset: 64, more: false }, ttl: 63 }),
        },
      ],
    },
  ]
}

/** Shortens a first fragment to `bytes` of body, with its lengths and header checksum right. */
function cut(f: Family, frame: Uint8Array, bytes: number): Uint8Array {
  const head = f.v4 ? 34 : 14 + 40 + 8
  const out = frame.slice(0, head + bytes)
  const view = new DataView(out.buffer)
  if (!f.v4) {
    view.setUint16(18, 8 + bytes)
    return out
  }
  view.setUint16(16, 20 + bytes)
  view.setUint16(24, 0)
  let sum = 0
  for (let i = 14; i < 34; i += 2) sum += view.getUint16(i)
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16)
  view.setUint16(24, ~sum & 0xffff)
  return out
}

export const cases: readonly PacketCase[] = families.flatMap(fragments)
