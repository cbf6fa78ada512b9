// SPDX-License-Identifier: Apache-2.0
/** RST windows, ports that collide, and ports that are used again. Layer: test. */
import { tcp } from '../../../testkit/packets/packet.ts'
import type { PacketCase } from '../../../testkit/packets/case.ts'
import type { Family } from '../../../testkit/packets/cluster.ts'
import { NAT_PORT, NODE_PORT, at, families } from '../../../testkit/packets/cluster.ts'

const PORT = 41000

function flowRules(f: Family): PacketCase[] {
  const c = at(f.client, PORT)
  const front = at(f.node, NODE_PORT)
  const back = at(f.pod, 8080)
  const backends = [{ addr: f.pod, port: 8080 }]
  const masked = at(f.node, NAT_PORT)
  const server = at(f.client, 443)
  const [p1, p2] = [at(f.maskedPod, PORT), at(f.maskedPod, PORT + 1)]
  const open = [
    { say: 'SYN', through: 'from_host', packet: tcp(c, front, { flags: 'S', seq: 1000, window: 100 }), action: 'redirect' },
    {
      say: 'SYN-ACK',
      through: 'from_workload',
      packet: tcp(back, c, { flags: 'SA', seq: 5000, ack: 1001, window: 100 }),
      action: 'redirect',
    },
    { say: 'ACK', through: 'from_host', packet: tcp(c, front, { flags: 'A', seq: 1001, ack: 5001, window: 100 }), action: 'redirect' },
  ] as const
  /** the client has a window of 100, which is `bytes` */
  const window100 = (bytes: number) =>
    [
      { say: 'ACK', through: 'from_host', packet: tcp(c, front, { flags: 'A', seq: 1001, ack: 5001, window: 100 }), action: 'redirect' },
      {
        say: 'beyond',
        through: 'from_workload',
        packet: tcp(back, c, { flags: 'R', seq: 5001 + bytes + 1 }),
        action: 'drop',
        reason: 'DROP_TCP_RST_WINDOW',
      },
      { say: 'within', through: 'from_workload', packet: tcp(back, c, { flags: 'R', seq: 5001 + bytes }), action: 'redirect' },
    ] as const
  return [
    {
      name: `${f.name}: a RST is believed only inside the window`,
      given: { backends },
      steps: [
        ...open,
        {
          say: 'blind RST from outside',
          through: 'from_host',
          packet: tcp(c, front, { flags: 'R', seq: 900_000 }),
          action: 'drop',
          reason: 'DROP_TCP_RST_WINDOW',
        },
        {
          say: 'blind RST from the backend',
          through: 'from_workload',
          packet: tcp(back, c, { flags: 'R', seq: 900_000 }),
          action: 'drop',
          reason: 'DROP_TCP_RST_WINDOW',
        },
        {
          say: 'the flow lives on',
          through: 'from_host',
          packet: tcp(c, front, { flags: 'A', seq: 1001, ack: 5001 }),
          action: 'redirect',
          out: tcp(c, back, { flags: 'A', seq: 1001, ack: 5001, ttl: 63 }),
        },
        {
          say: 'RST inside',
          through: 'from_host',
          packet: tcp(c, front, { flags: 'R', seq: 1001 }),
          action: 'redirect',
          out: tcp(c, back, { flags: 'R', seq: 1001, ttl: 63 }),
        },
      ],
    },
    ...([undefined, 'sack', 'timestamps', 'odd'] as const).map((layout): PacketCase => {
      const options = { mss: 1460, wscale: 7, ...(layout && { layout }) }
      return {
        name: `${f.name}: the window a RST must lie in is scaled as the SYN said (${layout ?? 'nothing'} beside it)`,
        given: { backends },
        steps: [
          { say: 'SYN', through: 'from_host', packet: tcp(c, front, { flags: 'S', seq: 1000, ...options }), action: 'redirect' },
          {
            say: 'SYN-ACK',
            through: 'from_workload',
            packet: tcp(back, c, { flags: 'SA', seq: 5000, ack: 1001, ...options }),
            action: 'redirect',
          },
          ...window100(100 * 128),
        ],
      }
    }),
    {
      name: `${f.name}: what ends an unknown option scales no window`,
      given: { backends },
      steps: [
        {
          say: 'SYN',
          through: 'from_host',
          packet: tcp(c, front, { flags: 'S', seq: 1000, mss: 1460, layout: 'unknown' }),
          action: 'redirect',
        },
        {
          say: 'SYN-ACK',
          through: 'from_workload',
          packet: tcp(back, c, { flags: 'SA', seq: 5000, ack: 1001, mss: 1460, layout: 'unknown' }),
          action: 'redirect',
        },
        ...window100(100),
      ],
    },
    {
      name: `${f.name}: a restarted backend's refusal of a new attempt on the same port is believed`,
      given: { backends },
      steps: [
        ...open,
        { say: 'SYN again', through: 'from_host', packet: tcp(c, front, { flags: 'S', seq: 700_000 }), action: 'redirect' },
        {
          say: 'refused',
          through: 'from_workload',
          packet: tcp(back, c, { flags: 'RA', seq: 0, ack: 700_001 }),
          action: 'redirect',
          out: tcp(front, c, { flags: 'RA', seq: 0, ack: 700_001, ttl: 63 }),
        },
      ],
    },
    {
      name: `${f.name}: two flows that look alike to the backend: the second gets another source port`,
      given: { backends },
      steps: [
        {
          say: 'straight to the backend',
          through: 'from_workload',
          packet: tcp(at(f.secondPod, PORT), back, { flags: 'S' }),
          action: 'redirect',
          out: tcp(at(f.secondPod, PORT), back, { flags: 'S', ttl: 63 }),
        },
        {
          say: 'same port by the service',
          through: 'from_workload',
          packet: tcp(at(f.secondPod, PORT), at(f.vip, 80), { flags: 'S' }),
          action: 'redirect',
        },
        {
          say: 'answer to the first',
          through: 'from_workload',
          packet: tcp(back, at(f.secondPod, PORT), { flags: 'SA', ack: 1001 }),
          action: 'redirect',
          out: tcp(back, at(f.secondPod, PORT), { flags: 'SA', ack: 1001, ttl: 63 }),
        },
      ],
    },
    ...(f.v4
      ? [
          {
            name: `${f.name}: a SYN in a frame padded to 60 bytes is refused with the right number`,
            given: {},
            steps: [
              {
                say: 'SYN',
                through: 'from_host' as const,
                packet: Uint8Array.from([...tcp(c, front, { flags: 'S' }), 0, 0, 0, 0, 0, 0]),
                action: 'redirect' as const,
                out: tcp(front, c, { flags: 'RA', seq: 0, ack: 1001, window: 0 }),
              },
            ],
          },
        ]
      : []),
    {
      name: `${f.name}: a closing flow does not take its port back from its heir`,
      given: {},
      steps: [
        {
          say: '1 S',
          through: 'from_workload',
          packet: tcp(p1, server, { flags: 'S' }),
          action: 'redirect',
          out: tcp(masked, server, { flags: 'S', ttl: 63 }),
        },
        { say: '1 SA', through: 'from_host', packet: tcp(server, masked, { flags: 'SA', seq: 1, ack: 1001 }), action: 'redirect' },
        { say: '1 F', through: 'from_workload', packet: tcp(p1, server, { flags: 'FA', seq: 1001, ack: 2 }), action: 'redirect' },
        { say: '1 F back', through: 'from_host', packet: tcp(server, masked, { flags: 'FA', seq: 2, ack: 1002 }), action: 'redirect' },
        {
          say: '2 S',
          through: 'from_workload',
          packet: tcp(p2, server, { flags: 'S' }),
          action: 'redirect',
          out: tcp(masked, server, { flags: 'S', ttl: 63 }),
        },
        {
          say: '2 SA',
          through: 'from_host',
          packet: tcp(server, masked, { flags: 'SA' }),
          action: 'redirect',
          out: tcp(server, p2, { flags: 'SA', ttl: 63 }),
        },
        { say: '1 F again', through: 'from_workload', packet: tcp(p1, server, { flags: 'FA', seq: 1001, ack: 2 }), action: 'redirect' },
        {
          say: '2 data',
          through: 'from_host',
          packet: tcp(server, masked, { flags: 'A' }),
          action: 'redirect',
          out: tcp(server, p2, { flags: 'A', ttl: 63 }),
        },
      ],
    },
    {
      name: `${f.name}: a RST of a connection picked up in the middle, sent with data unacknowledged`,
      given: {},
      steps: [
        {
          say: 'client A',
          through: 'from_host',
          packet: tcp(c, back, { flags: 'A', seq: 1001, ack: 5001, window: 502 }),
          action: 'redirect',
        },
        {
          say: 'pod A',
          through: 'from_workload',
          packet: tcp(back, c, { flags: 'A', seq: 5001, ack: 1001, window: 502 }),
          action: 'redirect',
        },
        { say: 'RST', through: 'from_host', packet: tcp(c, back, { flags: 'R', seq: 1001 + 2896 }), action: 'redirect' },
      ],
    },
    {
      name: `${f.name}: a RST that is inside the window but not exact does not shorten a living connection`,
      given: { backends },
      steps: [
        ...open,
        { say: 'R', through: 'from_host', packet: tcp(c, front, { flags: 'R', seq: 1050 }), action: 'redirect' },
        {
          say: 'challenge ACK',
          through: 'from_workload',
          packet: tcp(back, c, { flags: 'A', seq: 5001, ack: 1001, window: 100 }),
          action: 'redirect',
        },
        {
          say: 'data',
          through: 'from_host',
          packet: tcp(c, front, { flags: 'A', seq: 1001, ack: 5001, payload: 'x' }),
          action: 'redirect',
        },
        {
          say: 'data after 20 s',
          through: 'from_host',
          packet: tcp(c, front, { flags: 'A', seq: 1002, ack: 5001, payload: 'x' }),
          action: 'redirect',
          age: 20_000,
        },
      ],
    },
  ]
}

export const cases: readonly PacketCase[] = families.flatMap(flowRules)
