// SPDX-License-Identifier: Apache-2.0
/** Ports that policy of host endpoints never cuts. Layer: lib/model (pure). */
import type { Cidr, Port } from '../base/ip.ts'

export interface FailsafePort {
  readonly protocol: number
  readonly port: Port
  /** where the other end is; undefined: anywhere */
  readonly net: Cidr | undefined
}

export interface Failsafes {
  /** ports of this node */
  readonly inbound: readonly FailsafePort[]
  /** ports of others that this node asks */
  readonly outbound: readonly FailsafePort[]
}
