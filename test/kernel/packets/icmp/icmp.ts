// SPDX-License-Identifier: Apache-2.0
/** Ping, and others' errors about flows. Layer: test. */
import { icmp, l3, udp } from '../../../../testkit/packets/packet.ts'
import type { PacketCase } from '../../../../testkit/packets/case.ts'
import { numbers, quoteAs } from './errors.ts'
import type { Family } from '../../../../testkit/packets/cluster.ts'
import { NODE_PORT, at, families } from '../../../../testkit/packets/cluster.ts'

const PORT = 41000

function icmpCases(f: Family): PacketCase[] {
  const n = numbers(f)
  const c = at(f.client, PORT)
  const front = at(f.node, NODE_PORT)
  const back = at(f.pod, 8080)
  const seen = udp(c, back, { payload: 'hello', ttl: 63 })
  const meant = udp(c, front, { payload: 'hello', ttl: 63 })
  const bodyOf = (frame: Uint8Array, original: Uint8Array) => quoteAs(f, frame, original)
  return [
    {
      name: `${f.name}: ping pod to pod, and from outside`,
      given: {},
      steps: [
        {
          say: 'request',
          through: 'from_workload',
          packet: icmp(f.pod, f.secondPod, { type: n.echo, word: 0x1234_0001 }),
          action: 'redirect',
          out: icmp(f.pod, f.secondPod, { type: n.echo, word: 0x1234_0001, ttl: 63 }),
        },
        {
          say: 'reply',
          through: 'from_workload',
          packet: icmp(f.secondPod, f.pod, { type: n.reply, word: 0x1234_0001 }),
          action: 'redirect',
          out: icmp(f.secondPod, f.pod, { type: n.reply, word: 0x1234_0001, ttl: 63 }),
        },
        {
          say: 'request from outside',
          through: 'from_host',
          packet: icmp(f.client, f.pod, { type: n.echo, word: 0x1235_0001 }),
          action: 'redirect',
          out: icmp(f.client, f.pod, { type: n.echo, word: 0x1235_0001, ttl: 63 }),
        },
        {
          say: 'request to the node',
          through: 'from_host',
          packet: icmp(f.client, f.node, { type: n.echo, word: 0x1236_0001 }),
          action: 'pass',
          out: 'same',
        },
      ],
    },
    {
      name: `${f.name}: a backend's port unreachable is shown as the service's`,
      given: { backends: [{ addr: f.pod, port: 8080 }] },
      steps: [
        { say: 'datagram', through: 'from_host', packet: udp(c, front, { payload: 'hello' }), action: 'redirect', out: seen },
        {
          say: 'port unreachable',
          through: 'from_workload',
          packet: icmp(f.pod, f.client, { type: n.unreachable[0], code: n.unreachable[1], body: l3(seen) }),
          action: 'redirect',
          out: icmp(f.node, f.client, { type: n.unreachable[0], code: n.unreachable[1], ttl: 63, body: bodyOf(seen, meant) }),
        },
      ],
    },
    {
      name: `${f.name}: a router's error about a service's answer reaches the backend as its own`,
      given: { backends: [{ addr: f.pod, port: 8080 }] },
      steps: [
        { say: 'datagram', through: 'from_host', packet: udp(c, front, { payload: 'hello' }), action: 'redirect', out: seen },
        {
          say: 'answer',
          through: 'from_workload',
          packet: udp(back, c, { payload: 'world' }),
          action: 'redirect',
          out: udp(front, c, { payload: 'world', ttl: 63 }),
        },
        {
          say: 'too big, from a router on the way',
          through: 'from_host',
          packet: icmp(f.stranger, f.node, {
            type: n.tooBig[0],
            code: n.tooBig[1],
            word: 1400,
            body: l3(udp(front, c, { payload: 'world', ttl: 60 })),
          }),
          action: 'redirect',
          out: icmp(f.stranger, f.pod, {
            type: n.tooBig[0],
            code: n.tooBig[1],
            word: 1400,
            ttl: 63,
            body: quoteAs(f, udp(front, c, { payload: 'world', ttl: 60 }), udp(back, c, { payload: 'world', ttl: 60 })),
          }),
        },
      ],
    },
    {
      name: `${f.name}: errors about flows we do not know are the kernel's`,
      given: {},
      steps: [
        {
          say: 'unreachable',
          through: 'from_host',
          packet: icmp(f.stranger, f.node, { type: n.unreachable[0], code: 1, body: l3(udp(front, c, {})) }),
          action: 'pass',
          out: 'same',
        },
        {
          say: 'about a packet that was cut short',
          through: 'from_host',
          packet: icmp(f.stranger, f.node, { type: n.unreachable[0], code: 1, body: l3(udp(front, c, {})).subarray(0, f.v4 ? 22 : 42) }),
          action: 'pass',
          out: 'same',
        },
      ],
    },
  ]
}

export const cases: readonly PacketCase[] = families.flatMap(icmpCases)
