// SPDX-License-Identifier: Apache-2.0
/** Hop limits, sizes, and what has no backend: answered with ICMP errors. Layer: test. */
import { tcp, udp } from '../../../../testkit/packets/packet.ts'
import type { PacketCase } from '../../../../testkit/packets/case.ts'
import { error, numbers } from '../icmp/errors.ts'
import type { Family } from '../../../../testkit/packets/cluster.ts'
import { A_WHILE, DECIDED, NODE_PORT, at, devices, families } from '../../../../testkit/packets/cluster.ts'
import { policy } from '../policy/policies.ts'

const PORT = 41000

function sizes(f: Family): PacketCase[] {
  const n = numbers(f)
  const c = at(f.client, PORT)
  const mtu = 1500 - (f.v4 ? 50 : 70)
  const big = udp(c, at(f.node, NODE_PORT), { payload: new Uint8Array(mtu - (f.v4 ? 28 : 48) + 1) })
  const fits = udp(c, at(f.node, NODE_PORT), { payload: new Uint8Array(mtu - (f.v4 ? 28 : 48)) })
  const bigAt = (from: string, vip: string) => udp(from, at(vip, 80), { payload: new Uint8Array(mtu - (f.v4 ? 28 : 48) + 1) })
  const overlaid = udp(at(f.pod, PORT), at(f.overlayPod, 80), { payload: new Uint8Array(mtu - (f.v4 ? 28 : 48) + 1) })
  const far = { backends: [{ addr: f.remotePod, port: 8080, node: f.otherNode }] }
  const huge = (df: boolean, bytes = 1600) => udp(at(f.pod, PORT), at(f.remotePod, 80), { payload: new Uint8Array(bytes), df })
  const expiring = tcp(at(f.pod, PORT), at(f.remotePod, 80), { flags: 'S', ttl: 1 })
  return [
    {
      name: `${f.name}: too big for the tunnel: the entry node says so, with the size that fits`,
      given: far,
      steps: [
        {
          say: 'one byte too many',
          through: 'from_host',
          packet: big,
          action: 'redirect',
          reason: 'DROP_TOO_BIG',
          out: error(f, { packet: big, to: f.client, kind: n.tooBig, mtu }),
        },
        { say: 'just fits', through: 'from_host', packet: fits, action: 'redirect' },
        {
          say: 'known flow, one byte too many',
          through: 'from_host',
          packet: big,
          action: 'redirect',
          reason: 'DROP_TOO_BIG',
          out: error(f, { packet: big, to: f.client, kind: n.tooBig, mtu }),
        },
      ],
    },
    {
      name: `${f.name}: too big for the tunnel, or refused: the address that was asked says so, not the node's first`,
      given: far,
      steps: [
        {
          say: 'too big, from outside',
          through: 'from_host',
          packet: bigAt(c, f.vip),
          action: 'redirect',
          reason: 'DROP_TOO_BIG',
          out: error(f, { packet: bigAt(c, f.vip), to: f.client, kind: n.tooBig, mtu, from: f.vip }),
        },
        {
          say: 'too big for a pod elsewhere, from a pod: a router says so',
          through: 'from_workload',
          packet: overlaid,
          action: 'redirect',
          reason: 'DROP_TOO_BIG',
          out: error(f, { packet: overlaid, to: f.pod, kind: n.tooBig, mtu }),
        },
        {
          say: 'too big for a backend elsewhere, from a pod',
          given: { backends: [{ addr: f.overlayPod, port: 8080 }] },
          through: 'from_workload',
          packet: bigAt(at(f.pod, PORT), f.vip),
          action: 'redirect',
          reason: 'DROP_TOO_BIG',
          out: error(f, { packet: bigAt(at(f.pod, PORT), f.vip), to: f.pod, kind: n.tooBig, mtu, from: f.vip }),
        },
        {
          say: 'refused',
          given: {},
          through: 'from_host',
          packet: udp(c, at(f.vip, 80)),
          age: A_WHILE,
          action: 'redirect',
          reason: 'DROP_NO_BACKEND',
          out: error(f, { packet: udp(c, at(f.vip, 80)), to: f.client, kind: n.unreachable, from: f.vip }),
        },
      ],
    },
    {
      name: `${f.name}: too big for the way out of a device: IPv4 that may be cut is left to the kernel, the rest is answered`,
      given: {},
      steps: [
        {
          say: 'first packet',
          through: 'from_workload',
          packet: udp(at(f.pod, PORT), at(f.remotePod, 80), { payload: 'x' }),
          action: 'redirect',
        },
        ...(f.v4 ? [{ say: 'may be cut', through: 'from_workload', packet: huge(false), action: 'pass', out: 'same' } as const] : []),
        {
          say: 'may not be cut',
          through: 'from_workload',
          packet: huge(true),
          action: 'redirect',
          reason: 'DROP_TOO_BIG',
          out: error(f, { packet: huge(true), to: f.pod, kind: n.tooBig, mtu: 1500 }),
        },
      ],
    },
    {
      name: `${f.name}: longer than its device can receive: many segments in one, which fit`,
      given: {},
      steps: [{ say: 'segments', through: 'from_workload', packet: huge(true, 2100), action: 'redirect' }],
    },
    {
      name: `${f.name}: hop limit reached: time exceeded from this node`,
      given: far,
      steps: [
        {
          say: 'first packet',
          through: 'from_workload',
          packet: expiring,
          action: 'redirect',
          reason: 'DROP_TTL',
          out: error(f, { packet: expiring, to: f.pod, kind: n.expired }),
        },
        {
          say: 'at a node port',
          through: 'from_host',
          packet: tcp(c, at(f.node, NODE_PORT), { flags: 'S', ttl: 1 }),
          action: 'redirect',
          reason: 'DROP_TTL',
          out: error(f, { packet: tcp(c, at(f.node, NODE_PORT), { flags: 'S', ttl: 1 }), to: f.client, kind: n.expired }),
        },
        {
          say: 'to the node itself it may be 1',
          through: 'from_workload',
          packet: tcp(at(f.pod, PORT), at(f.node, 10250), { flags: 'S', ttl: 1 }),
          action: 'pass',
          out: 'same',
        },
      ],
    },
    {
      name: `${f.name}: no backend: refused at once`,
      given: {},
      steps: [
        {
          say: 'TCP from a pod',
          through: 'from_workload',
          packet: tcp(at(f.pod, PORT), at(f.vip, 80), { flags: 'S' }),
          action: 'redirect',
          reason: 'DROP_NO_BACKEND',
          out: tcp(at(f.vip, 80), at(f.pod, PORT), { flags: 'RA', seq: 0, ack: 1001, window: 0 }),
        },
        {
          say: 'the answer comes to the pod, past what its policies say of others',
          given: { policies: [policy('closed', { of: 'pod', ingress: [{ action: 'deny' }] })] },
          through: 'to_workload',
          mark: DECIDED,
          arrived: devices.pod.name,
          packet: tcp(at(f.vip, 80), at(f.pod, PORT), { flags: 'RA', seq: 0, ack: 1001, window: 0 }),
          action: 'pass',
        },
        {
          say: 'UDP from outside',
          given: { policies: [] },
          through: 'from_host',
          packet: udp(c, at(f.node, NODE_PORT), { payload: 'x' }),
          action: 'redirect',
          reason: 'DROP_NO_BACKEND',
          out: error(f, { packet: udp(c, at(f.node, NODE_PORT), { payload: 'x' }), to: f.client, kind: n.unreachable }),
        },
        {
          say: "UDP of the host's own: the service itself answers, for the host believes no answer from its own address",
          through: 'to_host',
          packet: udp(at(f.node, PORT), at(f.vip, 80), { payload: 'x' }),
          action: 'redirect',
          reason: 'DROP_NO_BACKEND',
          out: error(f, {
            packet: udp(at(f.node, PORT), at(f.vip, 80), { payload: 'x' }),
            to: f.node,
            kind: n.unreachable,
            from: f.vip,
          }),
        },
      ],
    },
  ]
}

export const cases: readonly PacketCase[] = families.flatMap(sizes)
