// SPDX-License-Identifier: Apache-2.0
/** Fragments of datagrams. Layer: test. */
import { tcp, udp } from '../../../../testkit/packets/packet.ts'
import type { PacketCase } from '../../../../testkit/packets/case.ts'
import { cut } from './cut.ts'
import type { Family } from '../../../../testkit/packets/cluster.ts'
import { NODE_PORT, at, families } from '../../../../testkit/packets/cluster.ts'

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
    {
      name: `${f.name}: a pod cannot speak of fragments that are not its own`,
      given: {},
      steps: [
        { say: 'spoofed first', through: 'from_workload', packet: first(at(f.elsewherePod, 9)), action: 'drop', reason: 'DROP_SPOOFED' },
        {
          say: 'a last one whose first was not seen',
          through: 'from_host',
          packet: part(at(f.elsewherePod, 9), { offset: 24, more: false }),
          action: 'drop',
          reason: 'DROP_FRAGMENT_UNKNOWN',
        },
      ],
    },
    ...(f.v4
      ? [
          {
            name: `${f.name}: ids of fragments are each protocol's own`,
            given: {},
            steps: [
              { say: 'first', through: 'from_host', packet: first(at(f.pod, 9)), action: 'redirect' },
              {
                say: "another protocol's last",
                through: 'from_host',
                packet: tcp(c, at(f.pod, 9), { payload, id: 77, fragment: { offset: 24, more: false } }),
                action: 'drop',
                reason: 'DROP_FRAGMENT_UNKNOWN',
              },
            ],
          } as const,
        ]
      : []),
    {
      name: `${f.name}: a fragment to a service address does not circle`,
      given: {},
      steps: [{ say: 'last', through: 'from_host', packet: part(at(f.bareVip, 9), { offset: 24, more: false }), action: 'drop' }],
    },
  ]
}

export const cases: readonly PacketCase[] = families.flatMap(fragments)
