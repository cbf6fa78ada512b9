// SPDX-License-Identifier: Apache-2.0
/** Writes NetplaneStatus objects, each only when it would say something else. Layer: operator. */
import type { ApiClient } from '#lib/api/client.ts'
import { isRefused } from '#lib/api/errors.ts'
import type { ApiObject } from '#lib/api/resource.ts'
import { isObject } from '#lib/base/object.ts'
import { findCondition } from '#lib/kube/objects/conditions.ts'
import { OPERATOR_GROUP, OPERATOR_VERSION, type Component } from '#lib/kube/operator-resources.ts'
import type { Log } from '#lib/obs/log.ts'
import { FIELD_MANAGER } from '../objects/owned-fields.ts'
import { degradedConditions, saysConditions, shownMessage, statusConditions, type StatusCondition } from './conditions.ts'
import type { Cause, ComponentState } from '#lib/control/rollout.ts'

export interface StatusWriterOptions {
  readonly client: Pick<ApiClient, 'apply' | 'delete'>
  readonly log: Log
  /** "2026-11-26T08:00:00Z" */
  readonly now: () => string
  /** called with each condition that holds now and did not, or for another reason or kind of it, or no longer */
  readonly onTransition: (component: Component, condition: StatusCondition, signal: AbortSignal) => Promise<void>
}

export interface StatusWrite {
  readonly generation: number
  /** the statuses that there are, by "/name" */
  readonly found: ReadonlyMap<string, ApiObject>
  /** components of which nothing else is known by now */
  readonly keeps?: ReadonlySet<Component> | undefined
  readonly signal: AbortSignal
}

const API_VERSION = `${OPERATOR_GROUP}/${OPERATOR_VERSION}`

export class StatusWriter {
  readonly #options: StatusWriterOptions
  /** of each component: kinds of the cause that were told since its condition Degraded has its reason */
  readonly #told = new Map<Component, { readonly reason: string; readonly kinds: ReadonlySet<string> }>()

  constructor(options: StatusWriterOptions) {
    this.#options = options
  }

  /** One of a component that is no more goes. */
  async write(states: ReadonlyMap<Component, ComponentState>, write: StatusWrite): Promise<void> {
    const { found, keeps, signal } = write
    await this.put(new Map([...states].filter(([component]) => keeps?.has(component) !== true)), write)
    for (const { metadata } of found.values())
      if (![...states.keys()].some((component) => component === metadata.name)) await this.#delete(metadata.name, signal)
  }

  /** Those of other components stay. */
  async put(states: ReadonlyMap<Component, ComponentState>, { generation, found, signal }: StatusWrite): Promise<void> {
    for (const [component, state] of states) {
      const before = found.get(`/${component}`)
      const conditions = statusConditions({ state, generation, found: before, now: this.#options.now() })
      await this.#put(component, { conditions, generation, found: before, kind: state.degraded?.kind, signal })
    }
  }

  /** How it is otherwise is not known by now, so that stays as it stands. */
  async degrade(component: Component, cause: Cause, { generation, found, signal }: StatusWrite): Promise<void> {
    const before = found.get(`/${component}`)
    const conditions = degradedConditions(cause, { generation, found: before, now: this.#options.now() })
    await this.#put(component, { conditions, generation, found: before, kind: cause.kind, signal })
  }

  async #put(
    name: Component,
    of: {
      readonly conditions: readonly StatusCondition[]
      readonly generation: number
      readonly found: ApiObject | undefined
      /** of what it is Degraded by */
      readonly kind: string | undefined
      readonly signal: AbortSignal
    },
  ): Promise<void> {
    const { client, log, onTransition } = this.#options
    const { conditions } = of
    const message = shownMessage(conditions)
    if (saysConditions(of.found, conditions) && messageOf(of.found) === message) return
    const object = { apiVersion: API_VERSION, kind: 'NetplaneStatus', metadata: { name } }
    const options = { fieldManager: FIELD_MANAGER, force: true, signal: of.signal }
    if (of.found === undefined) await client.apply(object, options)
    const status = { observedGeneration: of.generation, message, conditions }
    await client.apply({ ...object, status }, { ...options, subresource: 'status' })
    for (const condition of conditions) {
      const { type, reason } = condition
      log.debug({ component: name, type, status: condition.status, reason, message: condition.message }, 'status.written')
      const before = of.found === undefined ? undefined : findCondition(of.found, type)
      const isNewKind = type === 'Degraded' && this.#isNewKind(name, reason, of.kind)
      if (before?.status !== condition.status || before.reason !== reason || isNewKind) await onTransition(name, condition, of.signal)
    }
  }

  /** Each is news once, as long as the reason stays: two may come in turns. */
  #isNewKind(name: Component, reason: string, kind: string | undefined): boolean {
    const before = this.#told.get(name)
    const kinds = before?.reason === reason ? before.kinds : new Set<string>()
    this.#told.set(name, { reason, kinds: kind === undefined ? kinds : new Set([...kinds, kind]) })
    return kind !== undefined && !kinds.has(kind)
  }

  async #delete(name: string, signal: AbortSignal): Promise<void> {
    try {
      await this.#options.client.delete({ apiVersion: API_VERSION, kind: 'NetplaneStatus', name }, { signal })
    } catch (thrown) {
      if (!isRefused(thrown, 'NotFound')) throw thrown
    }
  }
}

function messageOf(object: ApiObject | undefined): unknown {
  const status = object?.['status']
  return isObject(status) ? status['message'] : undefined
}
