// SPDX-License-Identifier: Apache-2.0
/** Credentials that do not come: a file system that hangs, a provider that says nothing. Layer: lib/api. */
import type { Clock } from '../../base/clock.ts'
import { UnreachableError } from '../errors.ts'

/** Longer than a login program may take, which says so itself. */
const LIMIT_MS = 40_000

export async function withTimeLimit<T>(clock: Clock, credentials: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const cancel = clock.after(LIMIT_MS, () => {
    reject(new UnreachableError(`no credentials within ${LIMIT_MS / 1000} s`))
  })
  try {
    return await Promise.race([credentials, promise])
  } finally {
    cancel()
  }
}
