// SPDX-License-Identifier: Apache-2.0
/** Failsafe ports in the maps, as the agent writes them: the ports, and the compressed table that programs ask first. Layer: test. */
import { failsafeRows } from '#agent/compile/failsafes.ts'
import type { Failsafes } from '#agent/compile/failsafes.ts'
import { depthOf } from '#agent/compile/policy/prefixes.ts'
import { failsafeDirection } from '#agent/dataplane/rows.ts'
import { catalogue } from '#agent/maps/catalogue.ts'
import type { Loaded } from '../support/objects.ts'
import { TestMap } from '../support/objects.ts'

export const NO_FAILSAFES: Failsafes = { inbound: [], outbound: [] }
/** Bits of struct failsafe_key before the address. */
const PORT_BITS = 32

export class PacketFailsafes {
  readonly #ports
  readonly #spared
  #slots: readonly number[] = []

  constructor(loaded: Loaded) {
    this.#ports = new TestMap(loaded, catalogue.np_failsafes)
    this.#spared = new TestMap(loaded, catalogue.np_spared)
  }

  /** Whatever was there goes. */
  async start(failsafes: Failsafes): Promise<void> {
    await this.#ports.clear()
    for (const slot of this.#slots) this.#spared.set(slot, 0)
    const rows = failsafeRows(failsafes)
    this.#slots = rows.flatMap((row) => (row.table === 'spared' ? [row.key.slot] : []))
    for (const slot of this.#slots) this.#spared.set(slot, 1)
    for (const row of rows) {
      if (row.table !== 'failsafes') continue
      const { direction, protocol: proto, port, cidr } = row.key
      this.#ports.set(
        { prefix: PORT_BITS + depthOf(cidr), direction: failsafeDirection(direction, cidr.addr), proto, port, addr: cidr.addr },
        1,
      )
    }
  }

  close(): void {
    for (const { map } of [this.#ports, this.#spared]) map.close()
  }
}
