// SPDX-License-Identifier: Apache-2.0
/** Whether two host endpoints of all interfaces of one node judge all packets alike. Layer: cli (pure).
 *
 * It compares what judges packets, not packets: the policies that select either, tier by tier, and what comes after
 * them. Some endpoints that judge alike are found to differ; none that differs is found to judge alike. */
import { formatAddr } from '#lib/base/ip.ts'
import { deepEqual } from '#lib/base/deep-equal.ts'
import { hostEndpointLabels } from '#lib/model/effective-labels.ts'
import type { Labels } from '#lib/model/labels.ts'
import { DIRECTIONS, type Direction, type HostEndpoint, type Policy, type Rule, type Side } from '#lib/model/policy.ts'
import { refText } from '#lib/model/ref.ts'
import { selects } from '#lib/model/selector/selector.ts'
import { hostStages, untrackedLine } from '#lib/policy/host.ts'
import type { PolicyWorld } from '#lib/policy/peers.ts'
import type { Line, RuleList, TierLine } from '#lib/policy/walk-rules.ts'

/** Empty: they judge alike. `active`: the one of `before` that counts. */
export function differences(
  world: PolicyWorld,
  { active, before, after }: { readonly active: HostEndpoint; readonly before: readonly HostEndpoint[]; readonly after: HostEndpoint },
): readonly string[] {
  const lines = DIRECTIONS.flatMap((direction) => lineDifferences(world, { active, after, direction }))
  const ports = deepEqual(active.ports, after.ports) ? [] : ['it has named ports, and an automatic one has none']
  return [...lines, ...ports, ...peerDifferences(world, before, after)]
}

interface Pair {
  readonly active: HostEndpoint
  readonly after: HostEndpoint
  readonly direction: Direction
}

function lineDifferences(world: PolicyWorld, { active, after, direction }: Pair): readonly string[] {
  const of = { direction, view: 'real' } as const
  const [was, is] = [active, after].map((endpoint) => ({
    ...hostStages(world, endpoint, of),
    untracked: untrackedLine(world, endpoint, of),
  }))
  if (was === undefined || is === undefined) return []
  const stages = [
    ['untracked', was.untracked, is.untracked],
    ['before services are translated', was.early, is.early],
    ['what passes through', was.forward, is.forward],
    ['of the host itself', was.normal, is.normal],
  ] as const
  return stages.flatMap(([stage, a, b]) => (a === undefined || b === undefined ? [] : between(`${direction}, ${stage}`, a, b)))
}

function between(what: string, was: Line<Policy>, is: Line<Policy>): readonly string[] {
  const [old, now] = [was, is].map(({ tiers }) => tiers.map(tierText).join(', '))
  if (old !== now) return [`${what}: policies ${old || 'none'} become ${now || 'none'}`]
  // what stands after the tiers is not asked where one of them decides in any case
  if (!was.tiers.every(mayPass)) return []
  const [rest, restNow] = [was, is].map((line) => restText(line))
  return rest === restNow ? [] : [`${what}: what no policy decides is ${rest} and becomes ${restNow}`]
}

/** "default: GlobalNetworkPolicy/a GlobalNetworkPolicy/b deny" */
function tierText({ tier, policies, end }: TierLine<Policy>): string {
  return `${tier}: ${policies.map(({ of }) => refText(of)).join(' ')} ${end}`
}

function mayPass({ policies, end }: TierLine<Policy>): boolean {
  return end === 'pass' || policies.some(({ rules }) => rules.some(({ action }) => action === 'pass'))
}

/** "allowed", "denied", or by which rules. */
function restText({ profiles, end }: Line<Policy>): string {
  const rules = profiles.flatMap((list: RuleList<string>) => list.rules)
  const whole = rules.findIndex(isAboutAll)
  const asked = whole === -1 ? rules : rules.slice(0, whole + 1)
  const [only] = asked
  if (only === undefined) return end === 'allow' ? 'allowed' : 'denied'
  if (asked.length === 1 && whole === 0) return only.action === 'allow' ? 'allowed' : 'denied'
  return JSON.stringify(asked.map((rule) => ({ ...rule, at: 0, name: undefined })))
}

function isAboutAll({ ipVersion, protocols, notProtocols, icmp, notIcmp, source, destination }: Rule): boolean {
  const asksNothing = (side: Side): boolean =>
    Object.values(side).every((part: unknown) => part === undefined || (Array.isArray(part) && part.length === 0)) &&
    side.nets === undefined &&
    side.ports === undefined &&
    side.services === undefined
  const [one] = [ipVersion, protocols, icmp, notIcmp].filter((part) => part !== undefined)
  return one === undefined && notProtocols.length === 0 && asksNothing(source) && asksNothing(destination)
}

/** As others' policies see its addresses. */
function peerDifferences(world: PolicyWorld, before: readonly HostEndpoint[], after: HostEndpoint): readonly string[] {
  const addresses = new Set([...before, after].flatMap(({ expectedIPs }) => expectedIPs))
  const labelled = [...before, after].map((endpoint) => [endpoint, hostEndpointLabels(endpoint, world)] as const)
  const meant = (
    isMeant: (labels: Labels) => boolean,
    of: readonly HostEndpoint[],
    address: HostEndpoint['expectedIPs'][number],
  ): boolean => labelled.some(([endpoint, labels]) => of.includes(endpoint) && endpoint.expectedIPs.includes(address) && isMeant(labels))
  const found = [...world.policies.values()].flatMap((policy) => {
    const asked = sidesOf(policy).flatMap(meanings)
    const other = [...addresses].find((address) => asked.some((is) => meant(is, before, address) !== meant(is, [after], address)))
    return other === undefined ? [] : [`${refText(policy)} has ${formatAddr(other)} as a peer by its labels, or will have it`]
  })
  return [...new Set(found)]
}

function sidesOf({ ingress = [], egress = [] }: Policy): readonly Side[] {
  return [...ingress, ...egress].flatMap(({ source, destination }) => [source, destination])
}

function meanings({ selector, notSelector }: Side): readonly ((labels: Labels) => boolean)[] {
  if (selector === undefined && notSelector === undefined) return []
  if (selector === undefined) return [(labels) => notSelector !== undefined && selects(notSelector, labels)]
  return [(labels) => selects(selector, labels) && !(notSelector !== undefined && selects(notSelector, labels))]
}
