// SPDX-License-Identifier: Apache-2.0
/** Says which interfaces were chosen and why: log, condition, and what metrics are made of. Layer: agent/dataplane. */
import { ConditionReporter } from '#lib/obs/condition-reporter.ts'
import type { Health } from '#lib/obs/health.ts'
import type { Log } from '#lib/obs/log.ts'
import type { Decision } from './devices.ts'

/** Condition: no device with an address of the node is refused. */
export const DEVICES = 'dataplane.devices'

export class DeviceReport {
  readonly #log: Log
  /** by interface; pods' are not */
  readonly #said: ConditionReporter<Decision>

  constructor({ log, health }: { readonly log: Log; readonly health: Health }) {
    this.#log = log
    this.#said = new ConditionReporter<Decision>({
      health,
      condition: DEVICES,
      reason: (all) =>
        [...all.values()]
          .filter(({ use, vital }) => use === 'refused' && vital)
          .map(textOf)
          .join('; '),
      isSame: (before, now) => before.use === now.use && before.reason === now.reason,
      found: (device, now, before) => this.#found(device, now, before),
      gone: (device, { use }) => {
        if (use === 'host') log.info({ device, reason: 'is gone' }, 'device.released')
      },
    })
  }

  /** Chosen and refused ones that are no pod's. */
  list(): readonly Decision[] {
    return [...this.#said.all.values()].filter(({ use }) => use !== 'none')
  }

  /** Says what is new. */
  note(decisions: readonly Decision[]): void {
    this.#said.note(new Map(decisions.filter(({ use }) => use !== 'workload').map((decision) => [decision.iface.name, decision])))
  }

  #found(device: string, { use, reason }: Decision, before: Decision | undefined): void {
    if (use === 'refused') this.#log.warn({ device, reason }, 'device.rejected')
    else if (use === 'host') this.#log.info({ device, reason }, 'device.selected')
    else if (before !== undefined && before.use !== 'none') this.#log.info({ device, reason }, 'device.released')
    else this.#log.debug({ device, reason }, 'device.skipped')
  }
}

function textOf({ iface, reason }: Decision): string {
  return `${iface.name}: ${reason}`
}
