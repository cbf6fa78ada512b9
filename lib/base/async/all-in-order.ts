// SPDX-License-Identifier: Apache-2.0
/** Several at once, with a failure that does not depend on which is faster. Layer: lib/base. */

/** As Promise.all, but of several that fail the first in this order is told, once all have ended. */
export async function allInOrder<T extends readonly unknown[] | []>(works: T): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> {
  await Promise.allSettled(works)
  return await Promise.all(works)
}
