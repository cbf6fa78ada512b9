// SPDX-License-Identifier: Apache-2.0
/** Layer: test. */
import { expect, test } from 'vitest'
import { isRate, pathGoal } from '../../../bench/base/goals.ts'
import { MEASURES } from '../../../bench/path/result.ts'

test('a peer that is to be beaten makes the goal stricter, never easier', () => {
  const of = (id: string, rr: number, pps: number): (number | undefined)[] => {
    const peers = { vxlan: { rr_p50: rr, pps, cpu_per_gbit_wire: 1.05 } }
    return [
      pathGoal(id, 'rr_p50', peers),
      pathGoal(id, 'pps', peers),
      pathGoal(id, 'tput', peers),
      pathGoal(id, 'cpu_per_gbit_wire', peers),
    ]
  }
  expect(of('pod-remote-vxlan', 1.2, 0.8)).toEqual([1.2, 0.8, 0.97, 1.05])
  expect(of('pod-remote-vxlan', 1.7, 0.4)).toEqual([1.3, 0.7, 0.97, 1.05])
  expect(of('pod-remote', 0.5, 2)).toEqual([1.02, 1, 0.95, undefined])
})

test('of throughput on any wire more is better, of CPU less', () => {
  expect(MEASURES.filter(isRate)).toEqual(['pps', 'tput', 'tput_wire', 'tput_wire_9000'])
  expect(pathGoal('nodeport-remote.tunnel', 'tput_wire_9000', {})).toBe(0.97)
})
