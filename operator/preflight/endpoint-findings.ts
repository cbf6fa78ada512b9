// SPDX-License-Identifier: Apache-2.0
/** Whether the endpoint leads to one API server of several, or to a pod: by its address, or by all that its name has on
 * the nodes. Layer: operator (pure). */
import { formatAddr, tryParseAddr, unmapped } from '#lib/base/ip.ts'
import type { ApiObject } from '#lib/api/resource.ts'
import { namesText } from '#lib/control/names-text.ts'
import { endpointOwner, podRanges } from '#lib/preflight/endpoint-owner.ts'
import { finding, type Finding } from '#lib/preflight/findings.ts'
import type { Facts } from '#lib/preflight/report.ts'
import type { Computed } from '#lib/render/computed.ts'
import type { Endpoint } from '#lib/render/input.ts'

export interface EndpointQuestion {
  /** undefined: there is none to be judged */
  readonly endpoint: Endpoint | undefined
  readonly computed: Computed
  readonly nodes: readonly ApiObject[]
  readonly pools: readonly ApiObject[]
  /** those that may have its address */
  readonly endpointPods: readonly ApiObject[]
}

/** `facts`: of each node, once all have answered; undefined: what a name means is not known yet. A resolver may give
 * each node another address: such a name is of no single machine. */
export function endpointFindings(
  { endpoint, computed, nodes, pools, endpointPods }: EndpointQuestion,
  facts: ReadonlyMap<string, Facts> | undefined,
): readonly Finding[] {
  if (endpoint === undefined) return []
  const { host } = endpoint
  const isName = tryParseAddr(unmapped(host)) === undefined
  const addresses = isName ? resolved(facts) : [host]
  const owner = endpointOwner(addresses, { nodes, pods: endpointPods, ranges: podRanges(nodes, computed.cni === 'Netplane' ? pools : []) })
  if (owner === undefined) return []
  if (owner.kind !== 'node') return [finding('endpoint-pod', isName ? `${host} (${owner.address})` : host, owner.name)]
  if (owner.planes > 1) return [finding('endpoint-one-node', isName ? `${host} (${namesText(addresses)})` : host, owner.name)]
  // a name follows its address
  return isName ? [] : [finding('endpoint-only-node', host, owner.name)]
}

/** Nodes' words: what is no address is left out. */
function resolved(facts: ReadonlyMap<string, Facts> = new Map()): readonly string[] {
  const told = [...facts.values()].flatMap(({ addresses = '' }) => addresses.split(','))
  return [...new Set(told.flatMap((text) => tryParseAddr(text) ?? []))].map(formatAddr)
}
