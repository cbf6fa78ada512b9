// SPDX-License-Identifier: Apache-2.0
/** Fragments of datagrams. Layer: test. */
import { formatAddr } from '#lib/base/ip.ts'
import { endpoint, tcp, tunnel, udp } from '../../../../testkit/packets/packet.ts'
import type { Given, PacketCase, Step } from '../../../../testkit/packets/case.ts'
import { cut } from './cut.ts'
import { tunnelPort } from '../tunnel-port.ts'
import type { Family } from '../../../../testkit/packets/cluster.ts'
import { NODE_PORT, VNI, at, families } from '../../../../testkit/packets/cluster.ts'

const PORT = 41000

interface Way {
  readonly say: string
  readonly given: Given
  readonly through: 'from_host' | 'from_workload'
  readonly from: string
  readonly front: string
  readonly back: string
  readonly tunnelled?: boolean
}

/** Where programs send datagrams on, from `front` as their senders know it to `back`. */
function ways(f: Family): readonly Way[] {
  const [client, pod] = [at(f.client, PORT), at(f.pod, PORT)]
  const [service, here, there] = [at(f.bareVip, 80), at(f.pod, 8080), at(f.overlayPod, 8080)]
  const local: Given = { backends: [{ addr: f.secondPod, port: 8080 }] }
  const far: Given = { backends: [{ addr: f.overlayPod, port: 8080, node: f.otherNode }] }
  return [
    {
      say: 'of a service',
      given: { backends: [{ addr: f.pod, port: 8080 }] },
      through: 'from_host',
      from: client,
      front: service,
      back: here,
    },
    { say: 'to a pod', given: {}, through: 'from_host', from: client, front: here, back: here },
    { say: 'to a service of another node', given: far, through: 'from_host', from: client, front: service, back: there, tunnelled: true },
    { say: 'from a pod to a service', given: local, through: 'from_workload', from: pod, front: service, back: at(f.secondPod, 8080) },
    {
      say: 'from a pod to a service of another node',
      given: far,
      through: 'from_workload',
      from: pod,
      front: service,
      back: there,
      tunnelled: true,
    },
    { say: "from a pod to another node's", given: {}, through: 'from_workload', from: pod, front: there, back: there, tunnelled: true },
  ]
}

function portOf(from: string, to: string): number {
  const [src, dst] = [endpoint(from), endpoint(to)]
  return tunnelPort({ src: formatAddr(src.addr), dst: formatAddr(dst.addr), sport: src.port, dport: dst.port })
}

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
    ...ways(f).map(({ say, given, through, from, front, back, tunnelled }): PacketCase => {
      const sent = (packet: Uint8Array) =>
        tunnelled ? tunnel(f.node, f.otherNode, { inner: packet, vni: VNI, sport: portOf(from, front) }) : packet
      const body = (to: string, ttl: number, fragment: { offset: number; more: boolean }) =>
        udp(from, to, { payload, id: 77, ttl, fragment })
      const first = (to: string, ttl = 64) => cut(f, body(to, ttl, { offset: 0, more: true }), 24)
      const last = (to: string, ttl = 64) => body(to, ttl, { offset: 24, more: false })
      return {
        name: `${f.name}: a fragment before its first waits for it, ${say}: then they come in again, in order`,
        given: { ...given, frontends: [at(f.bareVip, 80)] },
        steps: [
          { say: 'last', through, packet: last(front), action: 'drop', reason: 'COUNT_FRAGMENT_HELD' },
          { say: 'first, which comes in again', through, packet: first(front), action: 'drop' },
          { say: 'first, again', through, packet: first(front), action: 'redirect', out: sent(first(back, 63)) },
          { say: 'last, again', through, packet: last(front), action: 'redirect', out: sent(last(back, 63)) },
        ],
      }
    }),
    {
      name: `${f.name}: all fragments that wait come in again behind their first`,
      given: {},
      steps: [
        ...[7, 6, 5, 4, 3, 2, 1].map((index): Step => ({
          say: `number ${index}`,
          through: 'from_host',
          packet: part(at(f.pod, 9), { offset: 24 * index, more: index < 7 }),
          action: 'drop',
          reason: 'COUNT_FRAGMENT_HELD',
        })),
        { say: 'first, which comes in again', through: 'from_host', packet: first(at(f.pod, 9)), action: 'drop' },
        { say: 'first, behind which nothing waits', through: 'from_host', packet: first(at(f.pod, 9)), action: 'redirect' },
      ],
    },
    {
      name: `${f.name}: eight fragments of a datagram wait, also long ones, and the ninth does not`,
      given: {},
      steps: Array.from({ length: 9 }, (_, index): Step => {
        const packet = udp(c, at(f.pod, 9), { payload: new Uint8Array(3200), id: 79, fragment: { offset: 64 + index * 8, more: true } })
        return {
          say: `number ${index}`,
          through: 'from_host',
          packet,
          action: 'drop',
          reason: index < 8 ? 'COUNT_FRAGMENT_HELD' : 'DROP_FRAGMENT_UNKNOWN',
        }
      }),
    },
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
