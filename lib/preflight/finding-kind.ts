// SPDX-License-Identifier: Apache-2.0
/** What a row of the tables of findings has. Layer: lib/preflight (pure). */

/** What is looked at on a node, each group by itself. */
export const PROBE_GROUPS = ['kernel', 'devices', 'others', 'endpoint', 'vxlan'] as const

export type ProbeGroup = (typeof PROBE_GROUPS)[number]

/** `cluster`: what the API server tells, and no node. */
export type FindingGroup = ProbeGroup | 'cluster'

/** blocking: nothing is changed while there is one */
export type FindingLevel = 'blocking' | 'warning'

export interface FindingKind {
  readonly group: FindingGroup
  readonly level: FindingLevel
  /** what its arguments are, in their order */
  readonly args: readonly string[]
  readonly text: (args: readonly string[]) => string
  /** with what was found changed so, the finding is gone */
  readonly remedy: (args: readonly string[]) => string
}

type Sentence = (a: string, b: string, c: string) => string

const sentence =
  (of: Sentence) =>
  ([a = '', b = '', c = '']: readonly string[]): string =>
    of(a, b, c)

type Row = readonly [group: FindingGroup, level: FindingLevel, args: readonly string[], text: Sentence, remedy: Sentence]

/** A row: its sentences take their arguments by place. */
export function kind(...[group, level, args, text, remedy]: Row): FindingKind {
  return { group, level, args, text: sentence(text), remedy: sentence(remedy) }
}
