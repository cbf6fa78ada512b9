// SPDX-License-Identifier: Apache-2.0
/** What each kernel is booted for. Layer: test (pure). */
import type { Row } from './kernel.ts'

/** A machine does one of them. */
export type Work = 'tests' | 'demo'

export interface Asked {
  /** none: those of the table that are meant then */
  readonly names: readonly string[]
  /** with what only `make kernels` boots */
  readonly all: boolean
  /** the demo alone */
  readonly demo: boolean
}

/** The longest first: then two lanes end together. */
export function worksOf(row: Row, { names, all, demo }: Asked): Work[] {
  const isNamed = names.includes(row.name)
  if (demo) return isNamed || (names.length === 0 && row.demo) ? ['demo'] : []
  if (names.length > 0) return isNamed ? ['tests'] : []
  if (all) return row.demo ? ['demo', 'tests'] : ['tests']
  return row.soak ? [] : ['tests']
}
