// SPDX-License-Identifier: Apache-2.0
/** Staged policies beside the real ones. Layer: test. */
import type { PacketCase } from '../../../../testkit/packets/case.ts'
import { podSide, policy, ruleName, toPort } from './policies.ts'
import { PORT, asker } from './asker.ts'
import type { Family } from '../../../../testkit/packets/cluster.ts'
import { at, families } from '../../../../testkit/packets/cluster.ts'

function staged(f: Family): PacketCase[] {
  const { lets, refuses } = asker(f)
  const flow = { proto: 6, from: at(f.secondPod, PORT), to: at(f.pod, 80) }
  const real = policy('real', { of: 'pod', ingress: [toPort(80)] })
  return [
    {
      name: `${f.name}: staged rules are noted, real ones decide`,
      newer: true,
      given: {
        policies: [
          real,
          policy('real', {
            of: 'pod',
            staged: 'Set',
            ingress: [{ action: 'deny', source: podSide('masked') }, { action: 'deny', ...toPort(80) }, {}],
          }),
        ],
      },
      steps: [
        {
          ...lets('let in, though it would not be', 80),
          flows: [
            {
              ...flow,
              rules: {
                ingress: ruleName('real', 'ingress', 0),
                stagedIngress: `Staged${ruleName('real', 'ingress', 1)}`,
                egress: '',
                stagedEgress: '',
              },
            },
          ],
        },
        refuses('not let in, though it would be', 81),
      ],
    },
    {
      name: `${f.name}: without staged rules both views are one`,
      given: { policies: [real] },
      steps: [
        {
          ...lets('let in', 80),
          flows: [{ ...flow, rules: { ingress: ruleName('real', 'ingress', 0), stagedIngress: ruleName('real', 'ingress', 0) } }],
        },
      ],
    },
    {
      name: `${f.name}: nothing is left to ask when the only policy is to go`,
      newer: true,
      given: { policies: [real, policy('real', { of: 'pod', staged: 'Delete' })] },
      steps: [{ ...lets('let in', 80), flows: [{ ...flow, rules: { ingress: ruleName('real', 'ingress', 0), stagedIngress: '' } }] }],
    },
    {
      name: `${f.name}: staged rules are recorded for a pod that has no others`,
      newer: true,
      given: { policies: [policy('new', { of: 'pod', staged: 'Set', ingress: [] })] },
      steps: [{ ...lets('let in', 80), flows: [{ ...flow, rules: { ingress: '', stagedIngress: 'Tier/default ingress end' } }] }],
    },
  ]
}

export const cases: readonly PacketCase[] = families.flatMap(staged)
