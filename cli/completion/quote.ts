// SPDX-License-Identifier: Apache-2.0
/** Text as one word of a shell. Layer: cli (pure). */

/** Of POSIX shells and zsh. */
export function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}

export function fishQuoted(text: string): string {
  return `'${text.replace(/['\\]/g, '\\$&')}'`
}
