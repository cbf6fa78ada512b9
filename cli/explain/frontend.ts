// SPDX-License-Identifier: Apache-2.0
/** By which row of services a node translates a destination. Layer: cli (pure). */
import { ADDR_NODE_PORTS, ADDR_SELF } from '#lib/base/bpf-constants.ts'
import { ANY_V4, ANY_V6, isV4, type Addr } from '#lib/base/ip.ts'

/** That of the address itself, or of a node port, which counts on the node's own addresses. `at`: the row of an
 * address; `info`: what the node knows of this one. */
export function frontendOf<F>(
  dst: Addr,
  at: (addr: Addr) => F | undefined,
  info: (addr: Addr) => { readonly kind: number; readonly flags: number } | undefined,
): F | undefined {
  const exact = at(dst)
  if (exact !== undefined) return exact
  const own = info(dst)
  return own?.kind === ADDR_SELF && (own.flags & ADDR_NODE_PORTS) !== 0 ? at(isV4(dst) ? ANY_V4 : ANY_V6) : undefined
}
