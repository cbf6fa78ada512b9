// SPDX-License-Identifier: Apache-2.0
/** Host endpoints by which a node itself sends nothing, though no policy was written to that end. Layer: agent
 * (pure). */
import { compareText } from '#lib/base/order.ts'
import { hostStages, WILDCARD } from '#lib/policy/host.ts'
import type { PolicyWorld } from '#lib/policy/peers.ts'
import { hostProfiles } from '#lib/policy/rule-order.ts'

const WHY =
  'no policy of type Egress selects it, and no profile of it has rules for what leaves: but for failsafe ports and answers ' +
  'the node sends nothing, not even the kubelet’s probes of its own pods'

/** By ref. The first wildcard of the node applies to its own processes. */
export function silentNodes(world: PolicyWorld, node: string): ReadonlyMap<string, string> {
  const wildcards = [...world.hostEndpoints.values()].filter((one) => one.node === node && one.interfaceName === WILDCARD)
  const [endpoint] = wildcards.sort((a, b) => compareText(a.name, b.name))
  // automatic ones have a profile with rules: then nobody looks through all policies
  if (endpoint === undefined || hostProfiles(world, endpoint, 'egress').some(({ rules }) => rules.length > 0)) return new Map()
  const { normal } = hostStages(world, endpoint, { direction: 'egress', view: 'real' })
  return normal?.tiers.length === 0 ? new Map([[`HostEndpoint/${endpoint.name}`, WHY]]) : new Map()
}
