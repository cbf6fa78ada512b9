// SPDX-License-Identifier: Apache-2.0
/** Conditions in the status of nodes and pods, both ways. Layer: lib/kube. */
import { isObject } from '../../base/object.ts'

/** Type of a Node's condition by which schedulers know that it has no network. */
export const NETWORK_UNAVAILABLE = 'NetworkUnavailable'
/** Reasons that agents give for it begin so; others' are another plugin's, or the cloud's. */
export const OUR_REASONS = 'Netplane'

export interface Condition {
  readonly status: 'True' | 'False'
  /** one word */
  readonly reason: string
  readonly message: string
}

export interface FoundCondition extends Omit<Condition, 'status'> {
  readonly status: string
  /** lastTransitionTime, as it is written; empty when it is not */
  readonly since: string
}

/** The condition of this type that an object has. */
export function findCondition(object: Readonly<Record<string, unknown>>, type: string): FoundCondition | undefined {
  const conditions = fieldOf(object['status'], 'conditions')
  const found: unknown = Array.isArray(conditions) ? conditions.find((one) => fieldOf(one, 'type') === type) : undefined
  if (found === undefined) return undefined
  return {
    status: textOf(found, 'status'),
    reason: textOf(found, 'reason'),
    message: textOf(found, 'message'),
    since: textOf(found, 'lastTransitionTime'),
  }
}

export interface ConditionWrite {
  readonly type: string
  readonly condition: Condition
  /** what the object has at present */
  readonly found: FoundCondition | undefined
  /** ISO 8601 */
  readonly now: string
}

/** As an entry of the list: the time of the last change stays when only words are others. */
export function conditionEntry({ type, condition, found, now }: ConditionWrite): Readonly<Record<string, string>> {
  const since = found?.status === condition.status && found.since !== '' ? found.since : now
  return { type, ...condition, lastTransitionTime: since }
}

export function saysTheSame(a: Pick<FoundCondition, 'status' | 'reason' | 'message'> | undefined, b: Condition): boolean {
  return a?.status === b.status && a.reason === b.reason && a.message === b.message
}

function fieldOf(value: unknown, name: string): unknown {
  return isObject(value) ? value[name] : undefined
}

function textOf(value: unknown, name: string): string {
  const text = fieldOf(value, name)
  return typeof text === 'string' ? text : ''
}
