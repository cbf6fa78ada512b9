// SPDX-License-Identifier: Apache-2.0
/** `completion`: what a shell reads to complete commands, flags and kinds. Layer: cli. */
import type { CommandResult } from '../command-result.ts'
import { bashScript } from './bash.ts'
import { fishScript } from './fish.ts'
import type { CompletionOrder, Shell } from './order.ts'
import { commandWords, type CommandWords } from './table.ts'
import { zshScript } from './zsh.ts'

const SCRIPTS: { readonly [shell in Shell]: (all: readonly CommandWords[]) => string } = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
}

export function completionCommand({ shell }: CompletionOrder): CommandResult {
  return { text: SCRIPTS[shell](commandWords()), warnings: '', exitCode: 0 }
}
