// SPDX-License-Identifier: Apache-2.0
/** ICMP from who may answer, that is no answer. Layer: test. */
import { icmp } from '../../support/packet.ts'
import type { PacketCase, Step } from './case.ts'
import { numbers } from './errors.ts'
import { policy } from './policies.ts'
import type { Family } from './world.ts'
import { families } from './world.ts'

/** The one who may answer pings may not ping for that. */
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

export const cases: readonly PacketCase[] = families.flatMap(asks)
