// SPDX-License-Identifier: Apache-2.0
/** What can stand on a command line, from the tables of commands. Layer: cli (pure). */
import { COMMON, commands, questions } from '../commands.ts'
import type { Flag } from '../given.ts'
import { clusterCommands, type ClusterCommand } from '../resources/commands.ts'
import { ALL_RESOURCES, V3_RESOURCES } from '../resources/kinds.ts'
import { SHELLS } from './order.ts'

export interface CommandWords {
  /** one or two words: "node status" */
  readonly name: string
  readonly about: string
  readonly flags: readonly Flag[]
  /** what its first word can be; empty: the shells do not know it */
  readonly first: readonly string[]
  /** its words are files */
  readonly takesFiles: boolean
}

/** In the order of the usage. */
export function commandWords(): readonly CommandWords[] {
  return [
    ...clusterCommands.map(({ name, about, flags, groups, usage }) => ({
      name,
      about,
      flags: [...flags, ...groups.flatMap((group) => group.flags)],
      first: firstWords({ name, usage }),
      takesFiles: false,
    })),
    ...commands.map(({ name, about, flags }) => ({ name, about, flags: [...flags, ...COMMON], first: [], takesFiles: false })),
    ...questions.map(({ name, about, flags, words }) => ({
      name,
      about,
      flags: [...flags, ...COMMON],
      first: [],
      takesFiles: isFile(words),
    })),
  ]
}

function firstWords({ name, usage }: Pick<ClusterCommand, 'name' | 'usage'>): readonly string[] {
  if (name === 'completion') return SHELLS
  if (!usage.startsWith('KIND')) return []
  return (name === 'get' ? ALL_RESOURCES : V3_RESOURCES).map(({ plural }) => plural)
}

/** "FILE", "DIR", "FILE|DIR": as flags and commands write what they take. */
export function isFile(value: string | undefined): boolean {
  return value === 'FILE' || value === 'DIR' || value === 'FILE|DIR'
}

/** First words of commands with two, each with its second ones: "bpf" → "nat", … */
export function folders(all: readonly CommandWords[]): ReadonlyMap<string, readonly CommandWords[]> {
  return Map.groupBy(
    all.filter(({ name }) => name.includes(' ')),
    ({ name }) => name.split(' ')[0] ?? '',
  )
}

/** Every word that can be the first, once. */
export function firstOfAll(all: readonly CommandWords[]): readonly string[] {
  return [...new Set(all.map(({ name }) => name.split(' ')[0] ?? ''))]
}

export function lastWord({ name }: CommandWords): string {
  return name.split(' ').at(-1) ?? ''
}
