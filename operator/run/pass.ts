// SPDX-License-Identifier: Apache-2.0
/** One pass: what the Installation asks for is made, or taken away once it is deleted; and how it is, is told.
 * Layer: operator. */
import type { Clock } from '#lib/base/clock.ts'
import { isObject } from '#lib/base/object.ts'
import type { ApiClient } from '#lib/api/client.ts'
import { ApiError, isRefused, UnreachableError } from '#lib/api/errors.ts'
import type { ApiObject } from '#lib/api/resource.ts'
import type { Component } from '#lib/kube/operator-resources.ts'
import type { Log } from '#lib/obs/log.ts'
import { OPERATOR } from '#lib/render/operator-pod.ts'
import { FIELD_MANAGER } from '../objects/owned-fields.ts'
import { OwnedObjects, textOf } from '../objects/owned-objects.ts'
import { degradedConditions, stateOfAll, statusConditions, type StatusCondition } from '../status/conditions.ts'
import { EventWriter } from '#lib/control/event-writer.ts'
import { installationStatus, saysStatus, versionOf } from '../status/installation-status.ts'
import { StatusWriter } from '../status/status-writer.ts'
import { ClusterFactsReader } from './cluster-facts.ts'
import type { ClusterView } from './cluster-view.ts'
import type { EndpointWatch } from './endpoint-watch.ts'
import { Install } from './install.ts'
import type { OperatorOptions } from './options.ts'
import type { Outcome } from './outcome.ts'
import { Uninstall } from './uninstall.ts'

export interface PassOptions {
  readonly client: ApiClient
  readonly clock: Clock
  readonly log: Log
  readonly view: ClusterView
  readonly options: Pick<OperatorOptions, 'namespace' | 'node' | 'systemNamespace'>
  readonly version: string
  readonly endpoints: Pick<EndpointWatch, 'use' | 'silent'>
  /** false once another process may act */
  readonly mayAct: () => boolean
}

export class Pass {
  readonly #of: PassOptions
  readonly #owned: OwnedObjects
  readonly #statuses: StatusWriter
  readonly #events: EventWriter
  readonly #install: Install
  readonly #uninstall: Uninstall

  constructor(of: PassOptions) {
    const { client, log, clock } = of
    this.#of = of
    this.#owned = new OwnedObjects({ client, log })
    this.#events = new EventWriter({ client, log, component: OPERATOR, wall: () => clock.wall() })
    this.#statuses = new StatusWriter({
      client,
      log,
      now: () => this.#now(),
      onTransition: (component, condition, signal) => this.#tell(component, condition, signal),
    })
    const parts = {
      ...of,
      owned: this.#owned,
      events: this.#events,
      facts: new ClusterFactsReader(client),
      tell: this.#tellEarly.bind(this),
    }
    this.#install = new Install(parts)
    this.#uninstall = new Uninstall(parts)
  }

  /** By kind: how many objects were made, changed or deleted. */
  get writes(): ReadonlyMap<string, number> {
    return this.#owned.writes
  }

  /** Another process may have applied something since the last pass. */
  forget(): void {
    this.#owned.forget()
  }

  /** True when it is to be done again after a while, also if nothing changes. */
  async run(signal: AbortSignal): Promise<boolean> {
    const { view } = this.#of
    const { installation } = view
    if (installation === undefined) {
      await this.#statuses.write(new Map(), { generation: 0, found: view.statuses.objects, signal })
      return false
    }
    const present = new Map([...view.present()].map((object) => [textOf(object), object]))
    for (const key of this.#owned.desired) this.#owned.saw(key, present.get(key))
    const outcome = await this.#step(installation, signal)
    // an Installation that is gone by now has no status
    if (outcome === undefined) return false
    await this.#write(installation, outcome, signal)
    return outcome.isAgain
  }

  async #step(installation: ApiObject, signal: AbortSignal): Promise<Outcome | undefined> {
    const isLeaving = installation.metadata.deletionTimestamp !== undefined
    try {
      return await (isLeaving ? this.#uninstall : this.#install).step(installation, signal)
    } catch (thrown) {
      // others may end with the next try: a conflict, a server that has too much to do
      if (isRefused(thrown, 'Forbidden', 'Invalid', 'BadRequest')) await this.#tellRefused(installation, thrown, signal)
      throw thrown
    }
  }

  /** For those who do not read the log. */
  async #tellRefused(installation: ApiObject, { message }: ApiError, signal: AbortSignal): Promise<void> {
    const { generation = 0 } = installation.metadata
    const cause = { reason: 'Refused', message }
    try {
      await this.#statuses.degrade('network', cause, { generation, found: this.#of.view.statuses.objects, signal })
      const conditions = degradedConditions(cause, { generation, found: installation, now: this.#now() })
      await this.#writeStatus(installation, { ...(isObject(installation['status']) ? installation['status'] : {}), conditions }, signal)
    } catch (thrown) {
      if (!(thrown instanceof ApiError || thrown instanceof UnreachableError)) throw thrown
    }
  }

  async #write(installation: ApiObject, { computed, endpoint, isInstalled, states, keeps }: Outcome, signal: AbortSignal): Promise<void> {
    const { generation = 0 } = installation.metadata
    await this.#statuses.write(states, { generation, found: this.#of.view.statuses.objects, keeps, signal })
    const state = stateOfAll(states)
    const conditions = statusConditions({ state, generation, found: installation, now: this.#now() })
    const version = versionOf(installation, states.get('network'), this.#of.version)
    await this.#writeStatus(installation, installationStatus({ computed, endpoint, isInstalled, version, generation, conditions }), signal)
  }

  /** Of some components alone. */
  async #tellEarly(installation: ApiObject, states: Outcome['states'], signal: AbortSignal): Promise<void> {
    const { generation = 0 } = installation.metadata
    await this.#statuses.put(states, { generation, found: this.#of.view.statuses.objects, signal })
  }

  async #writeStatus(installation: ApiObject, status: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<void> {
    if (saysStatus(installation, status)) return
    const { apiVersion, kind, metadata } = installation
    const told = { apiVersion, kind, metadata: { name: metadata.name }, status }
    await this.#of.client.apply(told, { fieldManager: FIELD_MANAGER, force: true, signal, subresource: 'status' })
  }

  async #tell(component: Component, { type, status, reason, message }: StatusCondition, signal: AbortSignal): Promise<void> {
    const { installation } = this.#of.view
    const isPhase = component === 'services' || component === 'proxy'
    if (installation === undefined || status !== 'True' || (type === 'Progressing' && !isPhase)) return
    const notice = { type: type === 'Degraded' ? 'Warning' : 'Normal', reason, message: `${component}: ${message}` } as const
    await this.#events.write(installation, notice, signal)
  }

  /** "2026-11-26T08:00:00Z" */
  #now(): string {
    return `${new Date(this.#of.clock.wall()).toISOString().slice(0, 19)}Z`
  }
}
