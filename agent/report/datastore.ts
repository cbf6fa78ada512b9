// SPDX-License-Identifier: Apache-2.0
/** Whether the datastore is locked, for log, health, and the probe of the pod's other container. Layer: agent. */
import { rmSync, writeFileSync } from 'node:fs'
import { everyMs, type Clock } from '#lib/base/clock.ts'
import { errorText } from '#lib/base/errors.ts'
import { whyLocked } from '#lib/model/cluster-information.ts'
import type { Health } from '#lib/obs/health.ts'
import type { Log } from '#lib/obs/log.ts'
import type { Store } from '#lib/store/store.ts'

/** Condition: objects of ours may be written. */
export const DATASTORE_READY = 'datastore.ready'
const LOOK_MS = 500

export interface DatastoreReportOptions {
  readonly store: Pick<Store, 'snapshot' | 'synced'>
  /** there while what was read last is that they may; undefined: no probe looks for it */
  readonly file: string | undefined
  readonly clock: Clock
  readonly health: Health
  readonly log: Log
}

export class DatastoreReport {
  readonly #options: DatastoreReportOptions
  #locked: string | undefined
  /** the file is as it is to be */
  #marked: boolean | undefined
  #failed: string | undefined

  constructor(options: DatastoreReportOptions) {
    this.#options = options
    // neither pods nor rollouts wait for it: what runs goes on
    options.health.expect(DATASTORE_READY, 'none')
  }

  async run(signal: AbortSignal): Promise<void> {
    const run = (): void => {
      this.look()
    }
    await everyMs(this.#options.clock, { ms: LOOK_MS, signal, run })
  }

  /** Before the first read, and while there is no API server, the last word stands: also that of an agent before, in
   * the same pod. */
  look(): void {
    const { store } = this.#options
    if (!store.synced) return
    const locked = whyLocked(store.snapshot)
    this.#say(locked)
    this.#mark(locked === undefined)
  }

  #say(locked: string | undefined): void {
    const { health, log } = this.#options
    if (locked === undefined) health.pass(DATASTORE_READY)
    else health.fail(DATASTORE_READY, locked)
    if (locked === this.#locked) return
    this.#locked = locked
    if (locked === undefined) log.info({}, 'datastore.unlocked')
    else log.warn({ reason: locked }, 'datastore.locked')
  }

  #mark(isReady: boolean): void {
    const { file, log } = this.#options
    if (file === undefined || this.#marked === isReady) return
    try {
      if (isReady) writeFileSync(file, '')
      else rmSync(file, { force: true })
      this.#marked = isReady
      this.#failed = undefined
    } catch (thrown) {
      const reason = errorText(thrown)
      if (reason !== this.#failed) log.error({ file, error: thrown }, 'datastore.mark-failed')
      this.#failed = reason
    }
  }
}
