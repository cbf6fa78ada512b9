// SPDX-License-Identifier: Apache-2.0
/** Names in a message that stays short in a large cluster. Layer: lib/control (pure). */

const MOST = 10

/** "a, b" – "a, b, c, d, e, f, g, h, i, j and 4,990 more" */
export function namesText(names: Iterable<string>): string {
  const sorted = [...new Set(names)].sort()
  const shown = sorted.slice(0, MOST).join(', ')
  return sorted.length <= MOST ? shown : `${shown} and ${(sorted.length - MOST).toLocaleString('en')} more`
}
