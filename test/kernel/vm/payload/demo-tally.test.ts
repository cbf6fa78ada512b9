// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest'
import { Report } from '../../../../demo/report.ts'
import { story } from '../../../../demo/story.ts'
import { LOSSES } from './demo-losses.ts'
import { demoTally } from './demo-tally.ts'

const TEXT = `.. agents

1. A client asks
           FROM    ANSWERED
   ok      client  web-1
   FAILED  client  nobody

2. Both agents are killed
   ok      control        lost 0
   FAILED  agents killed  lost 2
   FAILED  node-a         3 changes
   besides:
     FAILED  is a word here

demo: 2 passed, 3 failed
`
const CLIENT = 'A client asks: FAILED  client  nobody'
const LOST = 'Both agents are killed: FAILED  agents killed  lost 2'
const CHANGED = 'Both agents are killed: FAILED  node-a         3 changes'

test('the demo counts what held and names what did not, by chapter', () => {
  expect(demoTally(TEXT)).toEqual({ passed: 2, failures: [CLIENT, LOST, CHANGED], leftOut: [] })
})

test('rows of a chapter can be left out, and are named', () => {
  expect(demoTally(TEXT, [{ chapter: 'Both agents', rows: ['control', 'agents killed'] }])).toEqual({
    passed: 1,
    failures: [CLIENT, CHANGED],
    leftOut: ['Both agents are killed: ok      control        lost 0', LOST],
  })
})

test('a chapter that broke is one failure, whatever it says', () => {
  let text = ''
  const report = new Report({ write: (piece) => (text += piece), color: false })
  report.chapter('First')
  report.failure('agent of node a: ended; its log ends:\nFAILED or ok')
  report.end()
  expect(demoTally(text).failures).toEqual(['First: FAILED  agent of node a: ended; its log ends:'])
})

test.each([
  ['without an end', TEXT.replace(/^demo: .*\n/m, ''), 'the demo did not come to its end'],
  ['with results that are not seen', TEXT.replace('demo: 2', 'demo: 4'), 'the demo has 7 results, and 5 of them are understood'],
])('a demo %s has failed', (_name, text, wanted) => {
  expect(demoTally(text).failures).toEqual([CLIENT, LOST, CHANGED, wanted])
})

test('what is left out in an emulated machine is of a chapter that the demo has', () => {
  for (const { chapter } of LOSSES) expect(story.filter(({ title }) => title.startsWith(chapter))).toHaveLength(1)
})
