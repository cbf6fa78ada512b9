// SPDX-License-Identifier: Apache-2.0
/** A table's two directions as parts of the apply loop. Layer: agent/dataplane. */
import type { WriteGate } from './maps/write-order.ts'
import type { TableName } from './generation-tables.ts'
import { NOTHING_DONE, type Outcome, type ReconcileStep } from './reconcile/step.ts'
import type { Applied, MapTable } from './maps/map-table.ts'

/** What must be done before rows of a table may go. Frontends that could not be written still speak of the old rows. */
export const REMOVED_AFTER: Readonly<Partial<Record<TableName, readonly string[]>>> = {
  ifaces: ['hooks.remove'],
  ranges: ['frontends'],
  backends: ['frontends'],
  live: ['frontends'],
  maglev: ['frontends'],
}

/** Looked up each time: a new configuration may have brought another table. */
export interface TableNow {
  readonly table: MapTable
  readonly holds: WriteGate
}

export function writesOf(name: string, now: () => TableNow | undefined): ReconcileStep {
  return {
    name,
    pending: () => (now()?.table.pending.updates ?? 0) > 0,
    apply: () => {
      const { table, holds } = now() ?? {}
      const isHeld = holds?.writes(name)
      return outcome(name, table?.applyUpdates(isHeld), isHeld !== undefined)
    },
  }
}

export function removalsOf(name: string, now: () => TableNow | undefined): ReconcileStep {
  return {
    name: `${name}.remove`,
    pending: () => (now()?.table.pending.deletes ?? 0) > 0,
    apply: () => {
      const { table, holds } = now() ?? {}
      const isHeld = holds?.removals(name)
      return outcome(name, table?.applyDeletes(isHeld), isHeld !== undefined)
    },
  }
}

function outcome(name: string, applied: Applied | undefined, held: boolean): Outcome {
  if (applied === undefined) return NOTHING_DONE
  return { done: applied.done, failures: applied.errors.map((error) => ({ item: name, reason: error.message, cause: error })), held }
}
