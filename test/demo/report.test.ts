// SPDX-License-Identifier: Apache-2.0
/** What the demo prints, and what it counts. */
import { expect, test } from 'vitest'
import { Report } from '../../demo/report.ts'

function collect(color: boolean): { readonly report: Report; readonly text: () => string } {
  const written: string[] = []
  return { report: new Report({ write: (text) => written.push(text), color }), text: () => written.join('') }
}

test('a story is plain text, its last line the count', () => {
  const { report, text } = collect(false)
  report.progress('building')
  report.chapter('First')
  report.piece({
    kind: 'table',
    head: ['WHAT', 'SEEN'],
    rows: [
      { cells: ['long enough', 'yes'], ok: true },
      { cells: ['short', 'no'], ok: false },
    ],
  })
  report.piece({ kind: 'evidence', title: 'on the wire', lines: ['IP a > b'] })
  report.chapter('Second')
  report.failure('broke\nhere')
  report.end()
  expect(text()).toBe(`.. building

1. First
           WHAT         SEEN
   ok      long enough  yes
   FAILED  short        no
   on the wire
     IP a > b

2. Second
   FAILED  broke
           here

demo: 1 passed, 2 failed
`)
  expect(report.failed).toBe(2)
})

test('colours only where asked for', () => {
  const { report, text } = collect(true)
  report.chapter('First')
  expect(text()).toContain('\u001b[1m1. First\u001b[0m')
})
