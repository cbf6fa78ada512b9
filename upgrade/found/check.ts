// SPDX-License-Identifier: Apache-2.0
/** One thing that an installation is looked at for. Layer: upgrade (pure). */
import type { Refusal } from '../refusal.ts'
import type { Traits } from './traits.ts'

export interface Check {
  /** when it finds something, as docs/upgrade.md lists it */
  readonly when: string
  readonly find: (traits: Traits) => readonly Refusal[]
}
