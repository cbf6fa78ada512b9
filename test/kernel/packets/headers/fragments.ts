// SPDX-License-Identifier: Apache-2.0
/** Fragments of datagrams. Layer: test. */
import { tcp, udp } from '../../../../testkit/packets/packet.ts'
import type { PacketCase, Step } from '../../../../testkit/packets/case.ts'
import { cut } from './cut.ts'
import type { Family } from '../../../../testkit/packets/cluster.ts'
import { NODE_PORT, at, families } from '../../../../testkit/packets/cluster.ts'

const PORT = 41000

function fragments(f: Family): PacketCase[] {
  const c = at(f.client, PORT)
  const payload = new Uint8Array(64).map((_, i) => i)
  const part = (to: string, fragment: { offset: number; more: boolean }, { ttl = 64, id = 77 } = {}) =>
    udp(c, to, { payload, id, fragment, ttl })
  // the builder cuts the body of the whole datagram at `offset`; the first part is cut short here
  const first = (to: string, more: { ttl?: number; id?: number } = {}) => cut(f, part(to, { offset: 0, more: true }, more), 24)
  return [
    {
      name: `${f.name}: fragments of a service's datagram follow the first`,
      given: { backends: [{ addr: f.pod, port: 8080 }] },
      steps: [
        {
          say: 'first',
          through: 'from_host',
          packet: first(at(f.node, NODE_PORT)),
          action: 'redirect',
          out: first(at(f.pod, 8080), { ttl: 63 }),
        },
        {
          say: 'last',
          through: 'from_host',
          packet: part(at(f.node, NODE_PORT), { offset: 24, more: false }),
          action: 'redirect',
          out: part(at(f.pod, 8080), { offset: 24, more: false }, { ttl: 63 }),
        },
      ],
    },
    ...[
      { say: 'of a service', given: { backends: [{ addr: f.pod, port: 8080 }] }, front: at(f.bareVip, 80), back: at(f.pod, 8080) },
      { say: 'to a pod', given: {}, front: at(f.pod, 9), back: at(f.pod, 9) },
    ].map(({ say, given, front, back }): PacketCase => {
      const last = (to: string, more: { ttl?: number } = {}) => part(to, { offset: 24, more: false }, more)
      return {
        name: `${f.name}: a fragment before its first waits for it, ${say}: then they come in again, in order`,
        given: { ...given, frontends: [at(f.bareVip, 80)] },
        steps: [
          { say: 'last', through: 'from_host', packet: last(front), action: 'drop', reason: 'COUNT_FRAGMENT_HELD' },
          { say: 'first, which comes in again', through: 'from_host', packet: first(front), action: 'drop' },
          { say: 'first, again', through: 'from_host', packet: first(front), action: 'redirect', out: first(back, { ttl: 63 }) },
          { say: 'last, again', through: 'from_host', packet: last(front), action: 'redirect', out: last(back, { ttl: 63 }) },
        ],
      }
    }),
    {
      name: `${f.name}: a fragment to the node before its first waits in the kernel, and for a node port`,
      given: { backends: [{ addr: f.pod, port: 8080 }] },
      steps: ([NODE_PORT, 9] as const).flatMap((port): Step[] => [
        {
          say: `last, to port ${port}`,
          through: 'from_host',
          packet: part(at(f.node, port), { offset: 24, more: false }, { id: port }),
          action: 'pass',
          out: 'same',
          reason: 'COUNT_FRAGMENT_HELD',
        },
        {
          say: `first, to port ${port}`,
          through: 'from_host',
          packet: first(at(f.node, port), { id: port }),
          ...(port === NODE_PORT ? { action: 'drop' } : { action: 'pass', out: 'same' }),
        },
      ]),
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
          reason: 'COUNT_FRAGMENT_HELD',
        },
        { say: 'to the host', through: 'from_host', packet: part(at(f.node, 9), { offset: 24, more: false }), action: 'pass', out: 'same' },
      ],
    },
    {
      name: `${f.name}: a pod's fragment with another pod's address does not wait among that pod's`,
      given: {},
      steps: [
        {
          say: 'last',
          through: 'from_workload',
          packet: udp(at(f.elsewherePod, 1), at(f.remotePod, 9), { payload, id: 77, fragment: { offset: 24, more: false } }),
          action: 'drop',
          reason: 'DROP_SPOOFED',
        },
        {
          say: 'its own',
          through: 'from_workload',
          packet: udp(at(f.pod, 1), at(f.remotePod, 9), { payload, id: 77, fragment: { offset: 24, more: false } }),
          action: 'drop',
          reason: 'COUNT_FRAGMENT_HELD',
        },
      ],
    },
    {
      name: `${f.name}: a fragment that ends beyond the longest datagram is dropped`,
      given: {},
      steps: [
        { say: 'first', through: 'from_host', packet: first(at(f.pod, 9)), action: 'redirect' },
        {
          say: 'last',
          through: 'from_host',
          packet: part(at(f.pod, 9), { offset: 65_528, more: false }),
          action: 'drop',
          reason: 'DROP_MALFORMED',
        },
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
          reason: 'COUNT_FRAGMENT_HELD',
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
                reason: 'COUNT_FRAGMENT_HELD',
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
