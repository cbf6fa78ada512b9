// SPDX-License-Identifier: Apache-2.0
/** What the addon says of the machine, compared with what programs see. Layer: test. */
import { expect, test } from 'vitest'
import { BpfProgram, monotonicNs, ticksPerSecond } from '#native'
import { until } from '../../testkit/base/until.ts'
import { isRoot, PROGRAM } from './support.ts'

/** `call bpf_jiffies64; exit` */
const JIFFIES = Buffer.from('8500000076000000' + '9500000000000000', 'hex')
/** this process may stand still between two readings */
const WINDOWS = 5

test.skipIf(!isRoot)('the tick is that of jiffies', async () => {
  const program = BpfProgram.load({ type: PROGRAM.schedCls, instructions: JIFFIES, license: 'GPL' })
  const jiffies = (): number => program.testRun({ data: Buffer.alloc(14) }).retval
  const errors: number[] = []
  for (let window = 0; window < WINDOWS; window++) {
    const [since, from] = [monotonicNs(), jiffies()]
    await until('a quarter of a second', () => monotonicNs() - since > 250e6)
    const [passed, seconds] = [jiffies() - from, (monotonicNs() - since) / 1e9]
    errors.push(Math.abs(passed / seconds / ticksPerSecond() - 1))
  }
  program.close()
  // the configurable rates are 100, 250, 300 and 1000: the test need not see a difference between others
  expect(Math.min(...errors), `of each window: ${errors.join(' ')}`).toBeLessThan(0.08)
})
