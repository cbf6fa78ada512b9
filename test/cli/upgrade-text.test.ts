// SPDX-License-Identifier: Apache-2.0
/** How the end of an upgrade reads. Layer: test. */
import { expect, test } from 'vitest'
import { resultLines } from '#cli/upgrade/text.ts'
import type { StepResult } from '#upgrade/steps/run-steps.ts'

const result = (name: string, outcome: StepResult['outcome'], ...problems: readonly string[]): StepResult => ({ name, outcome, problems })

test('a dry run names the steps that are open, and is done only where none is', () => {
  const open = [result('lock', 'before'), result('import', 'done'), result('roll', 'done')]
  expect(resultLines(open, true)).toEqual(['Nothing is in the way of these steps: import, roll.'])
  const prune = { ...result('prune', 'done'), left: ['ConfigMap kube-system/netplane-config is still there'] }
  expect(resultLines([prune], true)).toEqual([
    'Nothing is in the way of these steps: prune.',
    '  prune: ConfigMap kube-system/netplane-config is still there',
  ])
  expect(resultLines([result('lock', 'before')], true)).toEqual(['The upgrade is done.'])
  expect(resultLines(open, false)).toEqual(['The upgrade is done.'])
})

test('a step that stopped is named with its reasons, in a dry run as well', () => {
  for (const isDry of [true, false])
    expect(resultLines([result('import', 'stopped', 'a reason')], isDry).slice(0, 2)).toEqual(['stopped at import:', '  a reason'])
})
