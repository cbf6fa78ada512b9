// SPDX-License-Identifier: Apache-2.0
/** A text that is cut in its middle: it begins with what failed, and ends with the cause. Layer: lib/base (pure). */

/** At most so many characters. */
export function withoutMiddle(text: string, most: number): string {
  if (text.length <= most) return text
  const begin = Math.floor(most / 3)
  return `${text.slice(0, begin).toWellFormed()}…${text.slice(text.length - (most - begin - 1)).toWellFormed()}`
}
