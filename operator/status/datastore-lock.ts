// SPDX-License-Identifier: Apache-2.0
/** What a lock of the datastore makes of a component that waits for pods or for words of agents.
 * Layer: operator (pure). */
import type { Cause, ComponentState } from '#lib/control/rollout.ts'

/** Of rollouts, and of phases of a switch. */
const HELD: ReadonlySet<string> = new Set(['RollingOut', 'Canary', 'Wave', 'Default', 'Finish', 'ProxyFirst', 'Hold', 'WaitsForNodes'])

/** Pods that are not ready for the lock alone look like a rollout that does not end. `lock`: why the datastore is
 * locked; undefined: it is not. */
export function underLock(state: ComponentState, lock: string | undefined): ComponentState {
  if (lock === undefined) return state
  const { unavailable, progressing } = state
  return {
    ...state,
    ...(unavailable === undefined ? {} : { unavailable: causeOf(unavailable, lock) }),
    ...(progressing === undefined ? {} : { progressing: causeOf(progressing, lock) }),
  }
}

/** Graver causes stay. */
function causeOf(cause: Cause, lock: string): Cause {
  return HELD.has(cause.reason) ? { reason: 'DatastoreLocked', message: `${lock}; ${cause.message}` } : cause
}
