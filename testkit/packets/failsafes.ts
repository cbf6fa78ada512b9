// SPDX-License-Identifier: Apache-2.0
/** Failsafe ports in the maps, as the agent writes them: the ports, and the compressed table that programs ask
 * first. Layer: testkit. */
import { failsafeRows } from '#agent/compile/failsafes.ts'
import { failsafeDirection } from '#agent/dataplane/maps/encode-rows.ts'
import { catalogue } from '#agent/maps/catalogue.ts'
import { depthOf } from '#lib/base/ip.ts'
import type { Failsafes } from '#lib/model/failsafe.ts'
import type { Loaded } from './objects.ts'
import { KeptMap } from './kept-map.ts'

export const NO_FAILSAFES: Failsafes = { inbound: [], outbound: [] }
/** Bits of struct failsafe_key before the address. */
const PORT_BITS = 32

export class PacketFailsafes {
  readonly #ports
  readonly #spared

  constructor(loaded: Loaded) {
    this.#ports = new KeptMap(loaded, catalogue.np_failsafes)
    this.#spared = new KeptMap(loaded, catalogue.np_spared, 0)
  }

  /** Whatever was there goes. */
  start(failsafes: Failsafes): void {
    this.#ports.clear()
    this.#spared.clear()
    for (const row of failsafeRows(failsafes)) {
      if (row.table === 'spared') this.#spared.set(row.key.slot, 1)
      if (row.table !== 'failsafes') continue
      const { direction, protocol: proto, port, cidr } = row.key
      this.#ports.set(
        { prefix: PORT_BITS + depthOf(cidr), direction: failsafeDirection(direction, cidr.addr), proto, port, addr: cidr.addr },
        1,
      )
    }
    for (const map of [this.#ports, this.#spared]) map.flush()
  }

  close(): void {
    for (const { map } of [this.#ports, this.#spared]) map.close()
  }
}
