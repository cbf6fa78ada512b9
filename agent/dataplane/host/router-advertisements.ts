// SPDX-License-Identifier: Apache-2.0
/** A node that forwards IPv6 still learns from its routers. Layer: agent/dataplane (pure). */
import type { DesiredNode } from '#agent/compile/desired.ts'
import type { Decision } from './devices.ts'
import { FORWARDING_V6, type WantedInstead } from './sysctls.ts'

/** Kinds of links by which routers are reached, whatever addresses they have yet; undefined is hardware. */
const NETWORK_KINDS: ReadonlySet<string | undefined> = new Set([undefined, 'bond', 'team', 'vlan'])
/** The kernel takes routers' word there until the node forwards; 2: also then. What is 0 or 2 was set by the node's
 * administrator, or by a program that listens to routers itself. A node that forwarded before took no router's word. */
const ACCEPTED: WantedInstead = { value: '2', insteadOf: '1', because: FORWARDING_V6 }

/** Of devices that lead to a network. Not of pods', nor of bridges with others' containers, which could play
 * routers. */
export function routerSysctls({ sysctls }: Pick<DesiredNode, 'sysctls'>, decisions: readonly Decision[]): Record<string, WantedInstead> {
  if (sysctls[FORWARDING_V6] !== '1') return {}
  const found = decisions.filter(({ iface, use }) => {
    if (use === 'host' || use === 'refused') return true
    return use === 'none' && !iface.loopback && NETWORK_KINDS.has(iface.kind)
  })
  return Object.fromEntries(found.map(({ iface }) => [`net/ipv6/conf/${iface.name}/accept_ra`, ACCEPTED]))
}
