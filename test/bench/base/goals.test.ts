// SPDX-License-Identifier: Apache-2.0
/** Layer: test. */
import { expect, test } from 'vitest'
import { pathGoal } from '../../../bench/base/goals.ts'

test('a peer that is to be beaten makes the goal stricter, never easier', () => {
  const of = (id: string, rr: number, pps: number): (number | undefined)[] => {
    const peers = { vxlan: { rr_p50: rr, pps } }
    return [pathGoal(id, 'rr_p50', peers), pathGoal(id, 'pps', peers), pathGoal(id, 'tput', peers)]
  }
  expect(of('pod-remote-vxlan', 1.2, 0.8)).toEqual([1.2, 0.8, undefined])
  expect(of('pod-remote-vxlan', 1.7, 0.4)).toEqual([1.3, 0.7, undefined])
  expect(of('pod-remote', 0.5, 2)).toEqual([1.02, 1, 0.95])
})
