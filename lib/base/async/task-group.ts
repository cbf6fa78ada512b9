// SPDX-License-Identifier: Apache-2.0
/** Runs several tasks that only end when their signal aborts. Layer: lib/base. */

export type Task = (stop: AbortSignal) => Promise<void>

export function taskOf(one: { run(stop: AbortSignal): Promise<void> }): Task {
  return (stop) => one.run(stop)
}

/** Resolves when all have ended after the signal; the first that fails ends the others, and is what this rejects
 * with. */
export async function runTaskGroup(signal: AbortSignal, tasks: readonly Task[]): Promise<void> {
  const failed = new AbortController()
  const stop = AbortSignal.any([signal, failed.signal])
  const results = await Promise.allSettled(
    tasks.map(async (task) => {
      try {
        await task(stop)
      } catch (thrown) {
        failed.abort(thrown)
        throw thrown
      }
    }),
  )
  if (failed.signal.aborted) throw failed.signal.reason
  for (const result of results) if (result.status === 'rejected') throw result.reason
}

/** Resolves when the signal aborts. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else
      signal.addEventListener(
        'abort',
        () => {
          resolve()
        },
        { once: true },
      )
  })
}
