// SPDX-License-Identifier: Apache-2.0
/** What a report of upstream's tests says, without the specs that were not chosen. Layer: test. */
import { expect, test } from 'vitest'
import { focusOf, outcomesOf } from '../../../testkit/kubernetes/upstream.ts'

function spec(state: string, more: object): object {
  return { State: state, LeafNodeType: 'It', ContainerHierarchyTexts: ['[sig-network] Services'], RunTime: 2e9, ...more }
}

test('a report has each spec that was chosen', () => {
  const report = [
    {
      SpecReports: [
        spec('passed', { LeafNodeText: 'works' }),
        spec('failed', { LeafNodeText: 'does not', Failure: { Message: 'no answer' } }),
        spec('timedout', { LeafNodeText: 'hangs' }),
        spec('skipped', { LeafNodeText: 'cannot', Failure: { Message: 'no cloud' } }),
        spec('skipped', { LeafNodeText: 'was not chosen' }),
        { State: 'passed', LeafNodeType: 'SynchronizedBeforeSuite' },
      ],
    },
  ]
  const name = (leaf: string): string => `[sig-network] Services ${leaf}`
  expect(outcomesOf(JSON.stringify(report))).toEqual([
    { name: name('works'), state: 'passed', message: '', seconds: 2 },
    { name: name('does not'), state: 'failed', message: 'no answer', seconds: 2 },
    { name: name('hangs'), state: 'failed', message: '', seconds: 2 },
    { name: name('cannot'), state: 'skipped', message: 'no cloud', seconds: 2 },
  ])
})

test('a spec is chosen by its whole name', () => {
  const focus = new RegExp(focusOf(['[sig-network] A should (not) b: c', '[sig-network] A d']))
  const suite = 'Kubernetes e2e suite '
  expect(['[sig-network] A should (not) b: c', '[sig-network] A d'].filter((name) => focus.test(suite + name))).toHaveLength(2)
  expect(['[sig-network] A d [Slow]', '[sig-other] [sig-network] A d'].filter((name) => focus.test(suite + name))).toEqual([])
})
