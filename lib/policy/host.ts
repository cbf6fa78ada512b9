// SPDX-License-Identifier: Apache-2.0
/** Host endpoints: which one an interface is, and what its packets are judged by. Layer: lib/policy (pure). */
import { isWithin } from '../base/ip.ts'
import type { Addr } from '../base/ip.ts'
import { compareText } from '../base/order.ts'
import { hostEndpointLabels } from '../model/effective-labels.ts'
import type { Failsafes } from '../model/failsafe.ts'
import type { Direction, HostEndpoint, Policy, Scope } from '../model/policy.ts'
import { isClosedIn } from '../model/policy-order.ts'
import type { Line, TierLine } from './walk-rules.ts'
import { hostProfiles, policiesIn, tierLines } from './rule-order.ts'
import type { View } from './rule-order.ts'
import type { Packet } from './packet.ts'
import type { PolicyWorld } from './peers.ts'
import type { Stages } from './stages.ts'

/** An interface of a node that is not a pod's. */
export interface HostInterface {
  readonly node: string
  readonly name: string
  readonly addresses: readonly Addr[]
}

/** All interfaces of a node that no other endpoint names, and its own processes. */
export const WILDCARD = '*'

/** The endpoint that names the interface; else one that expects an address of it; else the node's wildcard. Of
 * several the first by name. */
export function endpointOf(endpoints: Iterable<HostEndpoint>, of: HostInterface): HostEndpoint | undefined {
  const here = [...endpoints].filter((endpoint) => endpoint.node === of.node).sort((a, b) => compareText(a.name, b.name))
  return (
    here.find((endpoint) => endpoint.interfaceName === of.name) ??
    here.find((endpoint) => endpoint.interfaceName === undefined && endpoint.expectedIPs.some((addr) => of.addresses.includes(addr))) ??
    here.find((endpoint) => endpoint.interfaceName === WILDCARD)
  )
}

interface Asked {
  /** as the host sees it: `ingress` is what comes to it */
  readonly direction: Direction
  readonly view: View
}

/** Policies from before translation, and those of what passes through, leave open what they do not speak of: the
 * former even at the end of a tier. What the host itself sends and receives is denied unless a policy or a profile
 * allows it. */
export function hostStages(world: PolicyWorld, endpoint: HostEndpoint, of: Asked): Stages<Policy> {
  const tiers = (scopes: readonly Scope[]): readonly TierLine<Policy>[] => hostTiers(world, endpoint, { ...of, scopes })
  const profiles = hostProfiles(world, endpoint, of.direction)
  return {
    early: of.direction === 'ingress' ? { tiers: tiers(['preDNAT']).map(open), profiles: [], end: 'allow' } : undefined,
    forward: { tiers: tiers(['forward']), profiles: [], end: 'allow' },
    normal: { tiers: tiers(['normal', 'forward']), profiles, end: 'deny' },
    workload: undefined,
  }
}

/** Asked of every packet by itself, before all others; where its last hit is its end, no rule decided. */
export function untrackedLine(world: PolicyWorld, endpoint: HostEndpoint, of: Asked): Line<Policy> {
  return { tiers: hostTiers(world, endpoint, { ...of, scopes: ['doNotTrack'] }).map(open), profiles: [], end: 'allow' }
}

function hostTiers(
  world: PolicyWorld,
  endpoint: HostEndpoint,
  of: Asked & { readonly scopes: readonly Scope[] },
): readonly TierLine<Policy>[] {
  const policies = policiesIn(of.view, world.policies.values())
  return tierLines({ tiers: world.tiers, policies }, { ...of, labels: hostEndpointLabels(endpoint, world) })
}

/** Closed policies still close. */
function open(tier: TierLine<Policy>): TierLine<Policy> {
  return { ...tier, end: tier.policies.some(({ of }) => isClosedIn(of, tier.tier)) ? 'deny' : 'pass' }
}

/** Is the packet sent to a port that policy never cuts: of the host when it is asked, of others when the host asks? */
export function isFailsafe({ inbound, outbound }: Failsafes, { src, dst, protocol, dport }: Packet, direction: Direction): boolean {
  const [ports, peer] = direction === 'ingress' ? [inbound, src] : [outbound, dst]
  return ports.some((one) => one.protocol === protocol && one.port === dport && (one.net === undefined || isWithin([one.net], peer)))
}

/** Is it sent from one, as what such a port answers? Untracked policies know of no flow: they let it be if it may be
 * an answer, which of what begins a flow only a datagram may. */
export function isFailsafeAnswer(failsafes: Failsafes, packet: Packet, direction: Direction): boolean {
  const asked = { ...packet, src: packet.dst, dst: packet.src, sport: packet.dport, dport: packet.sport }
  return isFailsafe(failsafes, asked, direction === 'ingress' ? 'egress' : 'ingress')
}
