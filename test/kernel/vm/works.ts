// SPDX-License-Identifier: Apache-2.0
/** What each kernel is booted for. Layer: test (pure). */
import type { Row } from './kernel.ts'

/** A machine does one of them. `preflight`: the containers that look at a node, and what the operator reads of them. */
export type Work = 'tests' | 'demo' | 'preflight'

export interface Asked {
  /** none: those of the table that are meant then */
  readonly names: readonly string[]
  /** with what only `make kernels` boots */
  readonly all: boolean
  /** this alone, in the place of the tests */
  readonly only: Exclude<Work, 'tests'> | undefined
}

/** The longest first: then two lanes end together. */
export function worksOf(row: Row, { names, all, only }: Asked): Work[] {
  const isNamed = names.includes(row.name)
  if (only !== undefined) return isNamed || (names.length === 0 && row[only]) ? [only] : []
  if (names.length > 0) return isNamed ? [row.isSupported ? 'tests' : 'preflight'] : []
  return [
    ...(all && row.demo ? (['demo'] as const) : []),
    ...(row.isSupported && (all || row.gate) ? (['tests'] as const) : []),
    ...(all && row.preflight ? (['preflight'] as const) : []),
  ]
}
