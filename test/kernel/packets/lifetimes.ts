// SPDX-License-Identifier: Apache-2.0
/** Approval, age and renewal: what the flow table remembers beside the way. Layer: test. */
import { tcp, udp } from '../../../testkit/packets/packet.ts'
import type { FlowWanted, PacketCase } from '../../../testkit/packets/case.ts'
import type { Family } from '../../../testkit/packets/cluster.ts'
import { at, DECIDED, families } from '../../../testkit/packets/cluster.ts'

const PORT = 40000

function lifetimes(f: Family): PacketCase[] {
  const c = at(f.secondPod, PORT)
  const front = at(f.vip, 80)
  const back = at(f.pod, 8080)
  const there: FlowWanted = { proto: 17, from: c, to: front }
  const seenThere: FlowWanted = { proto: 17, from: c, to: back }
  const send = { through: 'from_workload', packet: udp(c, front, { payload: 'x' }), action: 'redirect' } as const
  const local = { backends: [{ addr: f.pod, port: 8080 }] }
  return [
    {
      name: `${f.name}: what is decided passes unseen`,
      given: local,
      steps: [
        {
          say: 'decided already',
          through: 'to_workload',
          mark: DECIDED,
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
  ]
}

export const cases: readonly PacketCase[] = families.flatMap(lifetimes)
