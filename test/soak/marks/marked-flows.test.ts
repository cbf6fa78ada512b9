// SPDX-License-Identifier: Apache-2.0
/** When marked flows were judged by half of a change. */
import { describe, expect, test } from 'vitest'
import type { Run } from '../../../lab/tools/probes.ts'
import { lags, walk, type Version, type Walk } from '../../../soak/marks/marked-flows.ts'

/** One datagram each 10 ms from 1000 on; of the text, "x" came through. */
function seen(text: string, versions: readonly Version[]): Walk {
  const runs: Run[] = [...text.matchAll(/x+/g)].map(({ index, 0: { length } }) => [
    index,
    index + length - 1,
    1000 + 10 * index,
    1000 + 10 * (index + length - 1),
  ])
  return walk({ runs, sent: text.length, end: 1000 + 10 * text.length }, versions)
}

const OPEN: Version = { at: 0, value: true }
const closedAt = (at: number): Version => ({ at, value: false })
const openAt = (at: number): Version => ({ at, value: true })

describe('no fault', () => {
  test.each([
    ['xxxx', [OPEN]],
    ['....', [{ at: 0, value: false }]],
    ['xxx...', [OPEN, closedAt(1020)]],
    ['...xxx', [{ at: 0, value: false }, openAt(1010)]],
    // two changes that were taken as one
    ['xxxxxx', [OPEN, closedAt(1010), openAt(1020)]],
    ['xx..xx', [OPEN, closedAt(1010), openAt(1030)]],
  ])('%s', (text, versions) => {
    expect(seen(text, versions).fault).toBeUndefined()
  })
})

describe('fault', () => {
  test.each([
    ['xx.xxx', [OPEN], 'numbers 2 to 2 were kept out'],
    ['..x...', [{ at: 0, value: false }], 'numbers 2 to 2 were let through'],
    ['xx.x.x.x....', [OPEN, closedAt(1015)], 'numbers 3 to 3 were let through'],
    ['xx..x...', [OPEN, closedAt(1010)], 'numbers 4 to 4 were let through'],
    ['xx...', [OPEN, closedAt(5000)], 'numbers 2 to 4 were kept out'],
    ['xxxxx', [OPEN, closedAt(1010)], 'not as in the last version'],
  ])('%s', (text, versions, fault) => {
    expect(seen(text, versions).fault?.text).toContain(fault)
  })
})

test('an open flow whose count is not known is kept out in the end when it is silent', () => {
  const versions = [OPEN, closedAt(1500)]
  expect(walk({ runs: [[0, 9, 1000, 1990]], sent: undefined, end: 4000 }, versions).fault).toBeUndefined()
  expect(walk({ runs: [[0, 9, 1000, 3990]], sent: undefined, end: 4000 }, versions).fault?.text).toContain('not as in the last version')
})

test('how long open flows were let through after new ones were not', () => {
  const versions = [OPEN, closedAt(1020), openAt(1100)]
  const [fresh, open] = [seen('xxx.......xxx', versions), seen('xxxxxxx...xxx', versions)]
  expect(lags(open, fresh, versions)).toEqual([{ ms: 40, at: 1020 }])
  // as long as they were
  expect(lags(seen('xxxxxxxxxxxxx', versions), fresh, versions)).toEqual([{ ms: 80, at: 1020 }])
})
