// SPDX-License-Identifier: Apache-2.0
/** A person who stops a command, which is to clean up then. Layer: cli. */

/** Aborts at the first SIGINT or SIGTERM; the next one ends the process as usual. */
export function interrupted(): AbortSignal {
  const stop = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM'] as const)
    process.once(name, () => {
      stop.abort(new Error('stopped'))
    })
  return stop.signal
}
