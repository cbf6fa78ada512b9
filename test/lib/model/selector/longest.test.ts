// SPDX-License-Identifier: Apache-2.0
/** A selector as long as an object has room for is made ready in little more than it takes to read. Layer: test. */
import { expect, test } from 'vitest'
import { matcherOf } from '#lib/model/selector/matcher.ts'
import { needsOf } from '#lib/model/selector/needs.ts'
import { parseSelector } from '#lib/model/selector/text.ts'

/** Times of what it takes to read: 1.2 to 2, and 3 to 5.7 with a map for each part. */
const MOST_TIMES = 2.8

test('a long selector becomes a matcher in at most 2.8 times the time of its parsing', { timeout: 60_000 }, () => {
  const text = Array.from({ length: 90_000 }, (_, at) => `has(k${at})`).join(' && ')
  const selector = parseSelector(text)
  const tries: string[] = []
  for (let attempt = 0; attempt < 3; attempt++) {
    const read = best(() => parseSelector(text))
    const [needs, matcher] = [best(() => needsOf(selector)), best(() => matcherOf(selector))]
    tries.push(`${read.toFixed(0)} ms, needs ${needs.toFixed(0)} ms, matcher ${matcher.toFixed(0)} ms`)
    if (needs + matcher > MOST_TIMES * read) continue
    if (process.env['SLICES'] !== undefined) console.log(tries.join('; '))
    return
  }
  expect(tries).toEqual(`at most ${MOST_TIMES} times as much`)
})

/** ms of this thread. */
function best(act: () => unknown): number {
  const times = Array.from({ length: 4 }, () => {
    const { user, system } = process.threadCpuUsage()
    act()
    const after = process.threadCpuUsage()
    return (after.user + after.system - user - system) / 1000
  })
  return Math.min(...times)
}
