// SPDX-License-Identifier: Apache-2.0
/** How long work in slices holds the event loop. Layer: test. */
import type { Sliced } from '#lib/base/async/slices.ts'

/** Does the work. ms that this thread took for all of it, and for the longest step. */
export function stepsOf(work: Sliced<unknown>): { readonly all: number; readonly longest: number } {
  const began = worked()
  let [last, longest] = [began, 0]
  for (let isDone = false; !isDone;) {
    isDone = work.next().done === true
    const now = worked()
    longest = Math.max(longest, now - last)
    last = now
  }
  return { all: last - began, longest }
}

function worked(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}
