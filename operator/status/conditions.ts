// SPDX-License-Identifier: Apache-2.0
/** The conditions of a NetplaneStatus, from how its component is. Layer: operator (pure). */
import { isObject } from '#lib/base/object.ts'
import type { ApiObject } from '#lib/api/resource.ts'
import { findCondition } from '#lib/kube/objects/conditions.ts'
import { CONDITION_TYPES, type Component } from '#lib/kube/operator-resources.ts'
import type { Cause, ComponentState } from '#lib/control/rollout.ts'

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

/** Of a component that waits for the preflight: such are known by the reason. */
export const AFTER_PREFLIGHT: Cause = { reason: 'Preflight', message: 'nothing is changed before the preflight has passed' }

const ALL_READY = { reason: 'AllReady', message: 'all of it is in place' }

/** As all of them are to stand; the time of the last change stays where a condition is what it was. */
export function statusConditions({ state, generation, found, now }: StatusInput): readonly StatusCondition[] {
  const available = state.unavailable ?? state.available ?? ALL_READY
  const lack = state.unavailable ?? state.degraded
  const causes: Readonly<Record<StatusCondition['type'], readonly [status: boolean, cause: Cause]>> = {
    Available: [state.unavailable === undefined, { ...available, message: [available.message, ...(state.notes ?? [])].join('; ') }],
    Progressing: [state.progressing !== undefined, state.progressing ?? { reason: lack?.reason ?? ALL_READY.reason, message: '' }],
    Degraded: [state.degraded !== undefined, state.degraded ?? { reason: ALL_READY.reason, message: '' }],
  }
  return CONDITION_TYPES.map((type) => {
    const [holds, { reason, message }] = causes[type]
    const status = holds ? 'True' : 'False'
    const before = found === undefined ? undefined : findCondition(found, type)
    const since = before?.status === status && before.since !== '' ? before.since : now
    return { type, status, reason, message, lastTransitionTime: since, observedGeneration: generation }
  })
}

/** What the conditions of an object say, so that they can stand as they are. */
export function stateOf(object: ApiObject): ComponentState {
  const [available, progressing, degraded] = CONDITION_TYPES.map((type) => findCondition(object, type))
  return {
    ...(available === undefined ? {} : available.status === 'True' ? { available } : { unavailable: available }),
    ...(progressing?.status === 'True' ? { progressing } : {}),
    ...(degraded?.status === 'True' ? { degraded } : {}),
  }
}

/** What a reader of all statuses is to see of this one. */
export function shownMessage(conditions: readonly StatusCondition[]): string {
  const of = (type: StatusCondition['type']): StatusCondition | undefined => conditions.find((condition) => condition.type === type)
  const degraded = of('Degraded')
  return (degraded?.status === 'True' ? degraded : of('Available'))?.message ?? ''
}

/** Components that an Installation is Available by, the graver first. */
const NEEDED: readonly Component[] = ['network', 'services', 'proxy']

/** Of an Installation by its components: what one of them lacks, it lacks. What waits for the preflight lacks what the
 * preflight has found. */
export function stateOfAll(states: ReadonlyMap<Component, ComponentState>): ComponentState {
  const needed = NEEDED.flatMap((component) => states.get(component) ?? [])
  const preflight = states.get('preflight') ?? {}
  const first = (part: 'unavailable' | 'progressing' | 'degraded'): Cause | undefined =>
    needed.find((state) => state[part] !== undefined)?.[part]
  const lacked = (part: 'unavailable' | 'progressing'): Cause | undefined => {
    const cause = first(part)
    return cause?.reason === AFTER_PREFLIGHT.reason ? (preflight[part] ?? cause) : cause
  }
  const parts = [
    ['unavailable', lacked('unavailable')],
    ['progressing', lacked('progressing')],
    ['degraded', first('degraded') ?? preflight.degraded],
  ] as const
  const notes = needed.flatMap((state) => state.notes ?? [])
  return { ...Object.fromEntries(parts.filter(([, cause]) => cause !== undefined)), ...(notes.length > 0 && { notes }) }
}

/** Degraded by this, and else as it stands, of the generation of which it was known. Where nothing stands: not
 * available either. */
export function degradedConditions(cause: Cause, about: Omit<StatusInput, 'state'>): readonly StatusCondition[] {
  const entries = entriesOf(about.found)
  return statusConditions({ ...about, state: { unavailable: cause, degraded: cause } }).map((condition) =>
    condition.type === 'Degraded' ? condition : { ...condition, ...entries.find(({ type }) => type === condition.type) },
  )
}

/** True when the object says just that already. */
export function saysConditions(found: ApiObject | undefined, conditions: readonly StatusCondition[]): boolean {
  const entries = entriesOf(found)
  return (
    entries.length === conditions.length &&
    conditions.every((condition) => entries.some((entry) => Object.entries(condition).every(([key, value]) => entry[key] === value)))
  )
}

function entriesOf(found: ApiObject | undefined): readonly Readonly<Record<string, unknown>>[] {
  const status = found?.['status']
  return isObject(status) && Array.isArray(status['conditions']) ? status['conditions'].filter(isObject) : []
}
