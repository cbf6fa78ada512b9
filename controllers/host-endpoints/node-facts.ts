// SPDX-License-Identifier: Apache-2.0
/** What automatic host endpoints are made of: nodes as Kubernetes and their agents tell of them.
 * Layer: controllers (pure). */
import type { Addr } from '#lib/base/ip.ts'
import { tryParseStoredAddr } from '#lib/base/stored-ip.ts'
import { isObject } from '#lib/base/object.ts'
import { compareText, by } from '#lib/base/order.ts'
import type { ApiObject } from '#lib/api/resource.ts'
import { parseObject } from '#lib/kube/parse/parse-object.ts'
import type { NodeInterface, NodeNetwork } from '#lib/model/node.ts'

export interface NodeFacts {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  /** by which Kubernetes knows it, without those of other networks */
  readonly addresses: readonly Addr[]
  /** undefined: its agent has not said them. It may be too old to know the profile of automatic host endpoints */
  readonly interfaces: readonly NodeInterface[] | undefined
}

/** What was read of each object: kubelets report of thousands of nodes that nothing has changed. */
export type ParsedNetworks = WeakMap<ApiObject, NodeNetwork>

/** Sorted by name: each Node, and each that its agent alone knows. */
export function nodeFacts(
  nodes: Iterable<ApiObject>,
  networks: Iterable<ApiObject>,
  read: ParsedNetworks = new WeakMap(),
): readonly NodeFacts[] {
  const byName = new Map([...networks].flatMap((object) => networkOf(object, read) ?? []).map((one) => [one.name, one]))
  const known = [...nodes].map((node): NodeFacts => {
    const { name, uid, labels = {} } = node.metadata
    const network = byName.get(name)
    byName.delete(name)
    const isOfAnother = network?.owner !== undefined && network.owner !== uid
    return { name, labels, addresses: internalAddresses(node), interfaces: isOfAnother ? undefined : network?.interfaces }
  })
  // one that a Node owned goes with it
  const byAgent = [...byName.values()].filter(({ owner }) => owner === undefined)
  const others = byAgent.map(({ name, labels, addresses, interfaces }): NodeFacts => ({
    ...{ name, labels: Object.fromEntries(labels), addresses, interfaces },
  }))
  return [...known, ...others].sort(by(({ name }) => name, compareText))
}

/** One that cannot be read counts as none. */
function networkOf(object: ApiObject, read: ParsedNetworks): NodeNetwork | undefined {
  const before = read.get(object)
  if (before !== undefined) return before
  const parsed = parseObject(object, { kind: 'NodeNetwork', namespace: '', name: object.metadata.name })
  if (parsed.kind !== 'ok' || parsed.value.kind !== 'NodeNetwork') return undefined
  read.set(object, parsed.value)
  return parsed.value
}

/** In their order. What is no address is left out. */
function internalAddresses({ status }: ApiObject): readonly Addr[] {
  const addresses: readonly unknown[] = isObject(status) && Array.isArray(status['addresses']) ? status['addresses'] : []
  return addresses.flatMap((one) => {
    if (!isObject(one) || one['type'] !== 'InternalIP' || typeof one['address'] !== 'string') return []
    return tryParseStoredAddr(one['address']) ?? []
  })
}
