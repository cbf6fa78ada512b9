// SPDX-License-Identifier: Apache-2.0
/** Waits for what is to be so by a time. Layer: soak. */
import { waitFor } from '../lab/wait.ts'
import { SoakError } from './errors.ts'

/** Throws SoakError with the last faults when there are still some after this time. */
export async function eventually(what: string, timeoutMs: number, faults: () => string[] | Promise<string[]>): Promise<void> {
  let last: string[] = []
  const none = async (): Promise<true | undefined> => {
    last = await faults()
    return last.length === 0 ? true : undefined
  }
  if ((await waitFor(none, { timeoutMs, everyMs: 100 })) === undefined) throw new SoakError(`${what}, after ${timeoutMs} ms`, last)
}
