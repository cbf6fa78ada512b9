// SPDX-License-Identifier: Apache-2.0
/** Arguments of `completion`. Layer: cli (pure). */
import { ConfigError } from '#lib/base/errors.ts'

export const SHELLS = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof SHELLS)[number]

export interface CompletionOrder {
  readonly kind: 'completion'
  readonly shell: Shell
}

/** Throws ConfigError. */
export function readCompletion(words: readonly string[]): CompletionOrder {
  const shell = SHELLS.find((one) => one === words[0])
  if (shell === undefined || words.length > 1) throw new ConfigError('completion', `needs one of ${SHELLS.join(', ')}`)
  return { kind: 'completion', shell }
}
