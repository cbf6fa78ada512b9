// SPDX-License-Identifier: Apache-2.0
/** Writes NetplaneStatus objects, each only when it would say something else. Layer: operator. */
import type { ApiClient } from '#lib/api/client.ts'
import { isRefused } from '#lib/api/errors.ts'
import type { ApiObject } from '#lib/api/resource.ts'
import { OPERATOR_GROUP, OPERATOR_VERSION, type Component } from '#lib/kube/operator-resources.ts'
import type { Log } from '#lib/obs/log.ts'
import { FIELD_MANAGER } from '../objects/owned-fields.ts'
import { saysConditions, statusConditions } from './conditions.ts'
import type { ComponentState } from './rollout.ts'

export interface StatusWriterOptions {
  readonly client: Pick<ApiClient, 'apply' | 'delete'>
  readonly log: Log
  /** "2026-11-26T08:00:00Z" */
  readonly now: () => string
}

const API_VERSION = `${OPERATOR_GROUP}/${OPERATOR_VERSION}`

export class StatusWriter {
  readonly #options: StatusWriterOptions

  constructor(options: StatusWriterOptions) {
    this.#options = options
  }

  /** `found`: the statuses that there are, by "/name". One of a component that is no more goes. */
  async write(
    states: ReadonlyMap<Component, ComponentState>,
    {
      generation,
      found,
      signal,
    }: { readonly generation: number; readonly found: ReadonlyMap<string, ApiObject>; readonly signal: AbortSignal },
  ): Promise<void> {
    for (const [component, state] of states) await this.#put(component, { state, generation, found: found.get(`/${component}`), signal })
    for (const { metadata } of found.values())
      if (![...states.keys()].some((component) => component === metadata.name)) await this.#delete(metadata.name, signal)
  }

  async #put(
    name: Component,
    of: {
      readonly state: ComponentState
      readonly generation: number
      readonly found: ApiObject | undefined
      readonly signal: AbortSignal
    },
  ): Promise<void> {
    const { client, log, now } = this.#options
    const conditions = statusConditions({ state: of.state, generation: of.generation, found: of.found, now: now() })
    if (saysConditions(of.found, conditions)) return
    const object = { apiVersion: API_VERSION, kind: 'NetplaneStatus', metadata: { name } }
    const options = { fieldManager: FIELD_MANAGER, force: true, signal: of.signal }
    if (of.found === undefined) await client.apply(object, options)
    await client.apply({ ...object, status: { observedGeneration: of.generation, conditions } }, { ...options, subresource: 'status' })
    for (const { type, status, reason, message } of conditions)
      log.debug({ component: name, type, status, reason, message }, 'status.written')
  }

  async #delete(name: string, signal: AbortSignal): Promise<void> {
    try {
      await this.#options.client.delete({ apiVersion: API_VERSION, kind: 'NetplaneStatus', name }, { signal })
    } catch (thrown) {
      if (!isRefused(thrown, 'NotFound')) throw thrown
    }
  }
}
