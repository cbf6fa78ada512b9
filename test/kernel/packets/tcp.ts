// SPDX-License-Identifier: Apache-2.0
/** RST windows and colliding ports. Layer: test. */
import { tcp } from '../../support/packet.ts'
import type { PacketCase } from './case.ts'
import type { Family } from './world.ts'
import { NODE_PORT, at, families } from './world.ts'

const PORT = 41000

function flowRules(f: Family): PacketCase[] {
  const c = at(f.client, PORT)
  const front = at(f.node, NODE_PORT)
  const back = at(f.pod, 8080)
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
  return [
    {
      name: `${f.name}: a RST is believed only inside the window`,
      given: { backends: [{ addr: f.pod, port: 8080 }] },
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
    {
      name: `${f.name}: the window a RST must lie in is scaled as the SYN said`,
      given: { backends: [{ addr: f.pod, port: 8080 }] },
      steps: [
        { say: 'SYN', through: 'from_host', packet: tcp(c, front, { flags: 'S', seq: 1000, mss: 1460, wscale: 7 }), action: 'redirect' },
        {
          say: 'SYN-ACK',
          through: 'from_workload',
          packet: tcp(back, c, { flags: 'SA', seq: 5000, ack: 1001, mss: 1460, wscale: 7 }),
          action: 'redirect',
        },
        { say: 'ACK', through: 'from_host', packet: tcp(c, front, { flags: 'A', seq: 1001, ack: 5001, window: 100 }), action: 'redirect' },
        {
          say: 'beyond',
          through: 'from_workload',
          packet: tcp(back, c, { flags: 'R', seq: 5001 + 100 * 128 + 1 }),
          action: 'drop',
          reason: 'DROP_TCP_RST_WINDOW',
        },
        { say: 'within', through: 'from_workload', packet: tcp(back, c, { flags: 'R', seq: 5001 + 100 * 128 }), action: 'redirect' },
      ],
    },
    {
      name: `${f.name}: a restarted backend's refusal of a new attempt on the same port is believed`,
      given: { backends: [{ addr: f.pod, port: 8080 }] },
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
      given: { backends: [{ addr: f.pod, port: 8080 }] },
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
  ]
}

export const cases: readonly PacketCase[] = families.flatMap(flowRules)
