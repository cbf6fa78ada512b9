// SPDX-License-Identifier: Apache-2.0
/** The end of a wait for an answer, in time in which this process could have seen the answer. Layer: lab (tool).
 *
 * A process that was held up finds its timers due first, and only then reads its sockets: a timer of its own would
 * tell it that nothing came. */

/** A wait is so many of them, and of each no more than its own length counts, however late it is over: a process that
 * is held up waits longer by that time, and no wait is without an end. */
const SLICES = 10
/** as late as timers are at all times */
const USUAL_LATENESS_MS = 5

/** Calls `run` when `ms` are over and everything that had arrived by then has been read. The returned function takes
 * it back. */
export function deadline(ms: number, run: () => void): () => void {
  const slice = Math.ceil(ms / SLICES)
  let left = ms
  let timer: NodeJS.Timeout
  let reading: NodeJS.Immediate | undefined
  const next = (): void => {
    const begun = performance.now()
    const length = Math.min(slice, left)
    const over = (): void => {
      left -= Math.min(performance.now() - begun, length + USUAL_LATENESS_MS)
      reading = setImmediate(left > 0 ? next : last)
    }
    timer = setTimeout(over, length)
  }
  // what was read may be no more than the end of a handshake, or a part: sockets are read once more
  const last = (): void => {
    reading = setImmediate(run)
  }
  next()
  return () => {
    clearTimeout(timer)
    clearImmediate(reading)
  }
}

/** What `act` comes to, whose signal aborts with a TimeoutError at the deadline. */
export async function within<T>(ms: number, act: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const late = new AbortController()
  const cancel = deadline(ms, () => {
    late.abort(new DOMException('no answer in time', 'TimeoutError'))
  })
  try {
    return await act(late.signal)
  } finally {
    cancel()
  }
}
