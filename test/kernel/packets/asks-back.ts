// SPDX-License-Identifier: Apache-2.0
/** What comes from an end that may answer, and is no answer: ICMP, SCTP, UDP-Lite, DCCP. Layer: test. */
import { icmp, plain } from '../../../testkit/packets/packet.ts'
import type { PacketCase, Step } from '../../../testkit/packets/case.ts'
import { numbers } from './icmp/errors.ts'
import { policy } from './policy/policies.ts'
import type { Family } from '../../../testkit/packets/cluster.ts'
import { families } from '../../../testkit/packets/cluster.ts'

/** A pod that may answer pings may not ping for that. */
function asks(f: Family): PacketCase[] {
  const n = numbers(f)
  const [timestamp, answer, redirect] = f.v4 ? [13, 14, 5] : [139, 140, 200]
  const sends = (say: string, from: string, type: number): Pick<Step, 'say' | 'through' | 'packet'> => ({
    say,
    through: 'from_workload',
    packet: icmp(from, from === f.pod ? f.secondPod : f.pod, { type, word: [n.echo, n.reply].includes(type) ? 0x0101_0001 : 0 }),
  })
  const refused = { action: 'drop', reason: 'DROP_POLICY' } as const
  return [
    {
      name: `${f.name}: a ping lets its answer in, and no ping of the other end with the same id`,
      given: { policies: [policy('in', { of: 'second', ingress: [] })] },
      steps: [
        { ...sends('asks', f.secondPod, n.echo), action: 'redirect' },
        { ...sends('asks back', f.pod, n.echo), ...refused },
        { ...sends('answers', f.pod, n.reply), action: 'redirect' },
        { ...sends('asks back again', f.pod, n.echo), ...refused },
        { ...sends('answers again', f.pod, n.reply), action: 'redirect' },
      ],
    },
    {
      name: `${f.name}: ICMP without an id lets answers in, and nothing else from the other end`,
      given: { policies: [policy('in', { of: 'second', ingress: [] })] },
      steps: [
        { ...sends('asks', f.secondPod, timestamp), action: 'redirect' },
        { ...sends('answers', f.pod, answer), action: 'redirect' },
        { ...sends('asks back', f.pod, timestamp), ...refused },
        { ...sends('asks again', f.secondPod, timestamp), action: 'redirect' },
        { ...sends('sends what is no answer', f.pod, redirect), ...refused },
      ],
    },
  ]
}

/** An SCTP packet; without a tag it begins an association. */
export function sctp([from, sport]: readonly [string, number], [to, dport]: readonly [string, number], tag: number): Uint8Array {
  const body = new Uint8Array(16)
  const view = new DataView(body.buffer)
  for (const [at, port] of [sport, dport].entries()) view.setUint16(at * 2, port)
  view.setUint32(4, tag)
  body[12] = tag === 0 ? 1 : 3
  return plain(from, to, { proto: 132, body })
}

/** A pod that may answer an association may not begin one for that. */
function begins(f: Family): PacketCase {
  const [own, far] = [
    [f.secondPod, 38_412],
    [f.pod, 38_412],
  ] as const
  const sends = (say: string, packet: Uint8Array): Pick<Step, 'say' | 'through' | 'packet'> => ({ say, through: 'from_workload', packet })
  return {
    name: `${f.name}: an SCTP association lets its answers in, and none that the other end begins by the same ports`,
    given: { policies: [policy('in', { of: 'second', ingress: [] })] },
    steps: [
      { ...sends('begins', sctp(own, far, 0)), action: 'redirect' },
      { ...sends('begins back', sctp(far, own, 0)), action: 'drop', reason: 'DROP_POLICY' },
      { ...sends('answers', sctp(far, own, 7)), action: 'redirect' },
      { ...sends('goes on', sctp(own, far, 8)), action: 'redirect' },
      { ...sends('begins back again', sctp(far, own, 0)), action: 'drop', reason: 'DROP_POLICY' },
      { ...sends('goes on, back', sctp(far, own, 7)), action: 'redirect' },
    ],
  }
}

/** Protocols whose ports no rule asks for: what was asked answers from the port that was asked, to the port that
 * asked. */
function lesser(f: Family): PacketCase[] {
  type End = readonly [addr: string, port: number]
  return Object.entries({ 'UDP-Lite': 136, DCCP: 33 }).map(([name, proto]) => {
    const sends = (from: End, to: End): Pick<Step, 'through' | 'packet'> => {
      const body = new Uint8Array(16)
      for (const [at, [, port]] of [from, to].entries()) new DataView(body.buffer).setUint16(at * 2, port)
      return { through: 'from_workload', packet: plain(from[0], to[0], { proto, body }) }
    }
    const [own, far] = [
      [f.secondPod, 2000],
      [f.pod, 1000],
    ] as const
    return {
      name: `${f.name}: a question by ${name} lets its answer in, and opens no other port`,
      given: { policies: [policy('in', { of: 'second', ingress: [] })] },
      steps: [
        { say: 'asks', ...sends(own, far), action: 'redirect' },
        { say: 'answer', ...sends(far, own), action: 'redirect' },
        { say: 'to another port', ...sends(far, [f.secondPod, 5353]), action: 'drop', reason: 'DROP_POLICY' },
        { say: 'from another port', ...sends([f.pod, 1001], own), action: 'drop', reason: 'DROP_POLICY' },
      ],
    }
  })
}

export const cases: readonly PacketCase[] = families.flatMap((f) => [...asks(f), begins(f), ...lesser(f)])
