// SPDX-License-Identifier: Apache-2.0
/** Approval, age and renewal: what the flow table remembers beside the way. Layer: test. */
import { tcp, udp } from '../../../testkit/packets/packet.ts'
import type { FlowWanted, PacketCase, Step } from '../../../testkit/packets/case.ts'
import type { Family } from '../../../testkit/packets/cluster.ts'
import { at, DECIDED, devices, families } from '../../../testkit/packets/cluster.ts'

const PORT = 40000

function lifetimes(f: Family): PacketCase[] {
  const c = at(f.secondPod, PORT)
  const front = at(f.vip, 80)
  const back = at(f.pod, 8080)
  const there: FlowWanted = { proto: 17, from: c, to: front }
  const seenThere: FlowWanted = { proto: 17, from: c, to: back }
  const send = { through: 'from_workload', packet: udp(c, front, { payload: 'x' }), action: 'redirect' } as const
  const local = { backends: [{ addr: f.pod, port: 8080 }] }
  const tcpStep = (say: string, packet: Uint8Array): Step => ({ say, through: 'from_workload', packet, action: 'redirect' })
  const attempt = [tcpStep('SYN', tcp(c, front, { flags: 'S' })), tcpStep('SYN-ACK', tcp(back, c, { flags: 'SA', ack: 1001 }))]
  const answer = tcp(back, c, { flags: 'A', seq: 1001, ack: 1001 })
  const translated = tcp(front, c, { flags: 'A', seq: 1001, ack: 1001, ttl: 63 })
  return [
    {
      name: `${f.name}: what is decided passes unseen`,
      given: local,
      steps: [
        {
          say: 'decided already',
          through: 'to_workload',
          mark: DECIDED,
          arrived: devices.secondPod.name,
          packet: udp(c, back, { payload: 'x', ttl: 63 }),
          action: 'pass',
          out: 'same',
        },
      ],
    },
    {
      name: `${f.name}: a packet after a while refreshes both entries of a translated flow`,
      given: local,
      steps: [
        { say: 'first', ...send },
        {
          say: 'a minute later',
          ...send,
          age: 60_000,
          flows: [
            { ...there, fresh: true },
            { ...seenThere, fresh: true },
          ],
        },
      ],
    },
    {
      name: `${f.name}: an answer in between does not let a flow stay longer with a backend that is gone`,
      given: local,
      steps: [
        { say: 'first', ...send },
        {
          say: 'answer, both entries being due to be looked at',
          through: 'from_workload',
          packet: udp(back, c, { payload: 'y' }),
          action: 'redirect',
          out: udp(front, c, { payload: 'y', ttl: 63 }),
          age: 1000,
        },
        {
          say: 'next, the backend being another',
          ...send,
          out: udp(c, at(f.pod, 9090), { payload: 'x', ttl: 63 }),
          given: { backends: [{ addr: f.pod, port: 9090 }] },
        },
      ],
    },
    {
      name: `${f.name}: answers alone keep both entries`,
      given: local,
      steps: [
        { say: 'first', ...send },
        {
          say: 'answer after a while',
          through: 'from_workload',
          packet: udp(back, c, { payload: 'y' }),
          action: 'redirect',
          age: 20_000,
          flows: [
            { ...there, fresh: true },
            { ...seenThere, fresh: true },
          ],
        },
      ],
    },
    {
      name: `${f.name}: a lost backend's view comes back with the client's next packet`,
      given: local,
      steps: [
        { say: 'first', ...send },
        { say: 'later', ...send, forget: seenThere, age: 60_000, flows: [seenThere] },
        {
          say: 'answer',
          through: 'from_workload',
          packet: udp(back, c, { payload: 'y' }),
          action: 'redirect',
          out: udp(front, c, { payload: 'y', ttl: 63 }),
        },
      ],
    },
    {
      name: `${f.name}: an expired flow is none`,
      given: local,
      steps: [
        { say: 'SYN', through: 'from_workload', packet: tcp(c, front, { flags: 'S' }), action: 'redirect' },
        { say: 'within its time', through: 'from_workload', packet: tcp(c, front, { flags: 'A' }), action: 'redirect', age: 2_000 },
        {
          say: 'after it',
          through: 'from_workload',
          packet: tcp(c, front, { flags: 'A' }),
          action: 'drop',
          reason: 'DROP_NO_FLOW',
          age: 10_000,
        },
      ],
    },
    {
      name: `${f.name}: a connection that its client has not acknowledged is over as soon as one that is not answered`,
      given: local,
      steps: [
        ...attempt,
        { ...tcpStep('SYN-ACK again', tcp(back, c, { flags: 'SA', ack: 1001 })), age: 2000 },
        {
          ...tcpStep('client, too late', tcp(c, front, { flags: 'A', seq: 1001, ack: 1001 })),
          ...{ action: 'drop', reason: 'DROP_NO_FLOW', age: 10_000 },
        },
        { ...tcpStep('backend, whose view is over as well', answer), out: tcp(back, c, { flags: 'A', seq: 1001, ack: 1001, ttl: 63 }) },
      ],
    },
    {
      name: `${f.name}: one that its client has acknowledged is open, in both its views`,
      given: local,
      steps: [
        ...attempt,
        tcpStep('ACK', tcp(c, front, { flags: 'A', seq: 1001, ack: 1001 })),
        { ...tcpStep('backend after a while', answer), age: 10_000, out: translated },
        { ...tcpStep('client after a while', tcp(c, front, { flags: 'A', seq: 1001, ack: 1001 })), age: 10_000 },
      ],
    },
    {
      name: `${f.name}: one of which a SYN comes once more stays open`,
      given: local,
      steps: [
        ...attempt,
        tcpStep('ACK', tcp(c, front, { flags: 'A', seq: 1001, ack: 1001 })),
        tcpStep('SYN', tcp(c, front, { flags: 'S' })),
        { ...tcpStep('backend after a while', answer), age: 10_000, out: translated },
      ],
    },
    {
      name: `${f.name}: one whose answers do not pass here is not open, and goes on while it has packets`,
      given: local,
      steps: [
        tcpStep('SYN', tcp(c, front, { flags: 'S' })),
        tcpStep('ACK', tcp(c, front, { flags: 'A', seq: 1001, ack: 1001 })),
        { ...tcpStep('data', tcp(c, front, { flags: 'A', seq: 1001, ack: 1001, payload: 'x' })), age: 2000 },
        {
          ...tcpStep('too late', tcp(c, front, { flags: 'A', seq: 1001, ack: 1001 })),
          ...{ action: 'drop', reason: 'DROP_NO_FLOW', age: 10_000 },
        },
      ],
    },
  ]
}

export const cases: readonly PacketCase[] = families.flatMap(lifetimes)
