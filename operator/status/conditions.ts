// SPDX-License-Identifier: Apache-2.0
/** The conditions of a NetplaneStatus, from how its component is. Layer: operator (pure). */
import { isObject } from '#lib/base/object.ts'
import type { ApiObject } from '#lib/api/resource.ts'
import { findCondition } from '#lib/kube/objects/conditions.ts'
import { CONDITION_TYPES } from '#lib/kube/operator-resources.ts'
import type { Cause, ComponentState } from './rollout.ts'

export interface StatusCondition {
  readonly type: (typeof CONDITION_TYPES)[number]
  readonly status: 'True' | 'False'
  readonly reason: string
  readonly message: string
  readonly lastTransitionTime: string
  readonly observedGeneration: number
}

export interface StatusInput {
  readonly state: ComponentState
  /** of the Installation that it is about */
  readonly generation: number
  /** what stands there; undefined: nothing */
  readonly found: ApiObject | undefined
  /** ISO 8601 */
  readonly now: string
}

/** As all of them are to stand; the time of the last change stays where a condition is what it was. */
export function statusConditions({ state, generation, found, now }: StatusInput): readonly StatusCondition[] {
  const causes: Readonly<Record<StatusCondition['type'], readonly [status: boolean, cause: Cause]>> = {
    Available: [state.unavailable === undefined, state.unavailable ?? { reason: 'AllReady', message: 'all of it is in place' }],
    Progressing: [state.progressing !== undefined, state.progressing ?? { reason: 'AllReady', message: '' }],
    Degraded: [state.degraded !== undefined, state.degraded ?? { reason: 'AllReady', message: '' }],
  }
  return CONDITION_TYPES.map((type) => {
    const [holds, { reason, message }] = causes[type]
    const status = holds ? 'True' : 'False'
    const before = found === undefined ? undefined : findCondition(found, type)
    const since = before?.status === status && before.since !== '' ? before.since : now
    return { type, status, reason, message, lastTransitionTime: since, observedGeneration: generation }
  })
}

/** True when the object says just that already. */
export function saysConditions(found: ApiObject | undefined, conditions: readonly StatusCondition[]): boolean {
  const status = found?.['status']
  const entries: readonly unknown[] = isObject(status) && Array.isArray(status['conditions']) ? status['conditions'] : []
  return (
    entries.length === conditions.length &&
    conditions.every((condition) =>
      entries.some((entry) => isObject(entry) && Object.entries(condition).every(([key, value]) => entry[key] === value)),
    )
  )
}
