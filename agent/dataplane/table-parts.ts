// SPDX-License-Identifier: Apache-2.0
/** A table's two directions as parts of the apply loop. Layer: agent/dataplane. */
import { NOTHING_DONE, type Outcome, type Part } from './part.ts'
import type { Applied, Table } from './table.ts'

/** `table` is asked for anew each time: a new configuration may have brought another one. */
export function writesOf(name: string, table: () => Table | undefined): Part {
  return {
    name,
    pending: () => (table()?.pending.updates ?? 0) > 0,
    apply: () => outcome(name, table()?.applyUpdates()),
  }
}

export function removalsOf(name: string, table: () => Table | undefined): Part {
  return {
    name: `${name}.remove`,
    pending: () => (table()?.pending.deletes ?? 0) > 0,
    apply: () => outcome(name, table()?.applyDeletes()),
  }
}

function outcome(name: string, applied: Applied | undefined): Outcome {
  if (applied === undefined) return NOTHING_DONE
  return { done: applied.done, failures: applied.errors.map((error) => ({ item: name, reason: error.message, cause: error })) }
}
