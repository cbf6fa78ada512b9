// SPDX-License-Identifier: Apache-2.0
/** What the jobs of a run cost the processors, which says what a shorter run would have to leave out. Layer: test. */
import { readFileSync } from 'node:fs'

/** of Linux, in /proc */
const TICKS_PER_S = 100

/** The function that it returns gives the seconds of a processor that children took which have ended since it was
 * called last, with their own children that they have waited for. Called as each job ends, it is that job's. */
export function processorTime(): () => number {
  let before = ofEndedChildren()
  return () => {
    const now = ofEndedChildren()
    const since = now - before
    before = now
    return since
  }
}

function ofEndedChildren(): number {
  const text = readFileSync('/proc/self/stat', 'utf8')
  // the name before the bracket may have spaces; cutime and cstime are the 14th and 15th after it, see proc_pid_stat(5)
  const [user, system] = text
    .slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .slice(13, 15)
  return (Number(user) + Number(system)) / TICKS_PER_S
}
