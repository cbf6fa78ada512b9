// SPDX-License-Identifier: Apache-2.0
/** Losses added up. Layer: bench (pure). */
import type { Losses } from './result.ts'

export function sumOf(all: readonly Losses[]): Losses {
  const sum = (name: keyof Losses): number => all.reduce((total, losses) => total + losses[name], 0)
  return { lost: sum('lost'), refused: sum('refused'), socketDrops: sum('socketDrops'), softnetDrops: sum('softnetDrops') }
}
