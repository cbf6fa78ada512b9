// SPDX-License-Identifier: Apache-2.0
/** Lists that a person reads in one line, however long they are. Layer: lib/base. */

const NAMED = 5

/** "a: why; b: why and 3 more"; empty where there are none. */
export function firstFew(texts: readonly string[]): string {
  const more = texts.length > NAMED ? ` and ${texts.length - NAMED} more` : ''
  return texts.slice(0, NAMED).join('; ') + more
}
