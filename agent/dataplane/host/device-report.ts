// SPDX-License-Identifier: Apache-2.0
/** Says which interfaces were chosen and why: log, condition, and what metrics are made of. Layer: agent/dataplane. */
import type { Health } from '#lib/obs/health.ts'
import type { Log } from '#lib/obs/log.ts'
import type { Decision } from './devices.ts'

/** Condition: no device with an address of the node is refused. */
export const DEVICES = 'dataplane.devices'

export class DeviceReport {
  readonly #log: Log
  readonly #health: Health
  /** by interface: what was last said of it; pods' are not */
  #said: ReadonlyMap<string, Decision> = new Map()

  constructor({ log, health }: { readonly log: Log; readonly health: Health }) {
    this.#log = log
    this.#health = health
  }

  /** Chosen and refused ones that are no pod's. */
  list(): readonly Decision[] {
    return [...this.#said.values()].filter(({ use }) => use !== 'none')
  }

  /** Says what is new. */
  note(decisions: readonly Decision[]): void {
    const before = this.#said
    this.#said = new Map(decisions.filter(({ use }) => use !== 'workload').map((decision) => [decision.iface.name, decision]))
    for (const [device, { use, reason }] of this.#said) {
      const known = before.get(device)
      if (known?.use === use && known.reason === reason) continue
      if (use === 'refused') this.#log.warn({ device, reason }, 'device.refused')
      else if (use === 'host') this.#log.info({ device, reason }, 'device.chosen')
      else if (known !== undefined && known.use !== 'none') this.#log.info({ device, reason }, 'device.left')
      else this.#log.debug({ device, reason }, 'device.passed-over')
    }
    for (const [device, { use }] of before)
      if (use === 'host' && !this.#said.has(device)) this.#log.info({ device, reason: 'is gone' }, 'device.left')
    this.#sayHealth()
  }

  #sayHealth(): void {
    const refused = this.list().filter(({ use, vital }) => use === 'refused' && vital)
    if (refused.length === 0) this.#health.pass(DEVICES)
    else this.#health.fail(DEVICES, refused.map(({ iface, reason }) => `${iface.name}: ${reason}`).join('; '))
  }
}
