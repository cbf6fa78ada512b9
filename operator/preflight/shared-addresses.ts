// SPDX-License-Identifier: Apache-2.0
/** Whether pods may get addresses that services, nodes or other pools have. Layer: operator (pure). */
import { cidrContains, depthOf, formatAddr, formatCidr, tryParseCidr, type Addr } from '#lib/base/ip.ts'
import { fieldsOf, textOf } from '#lib/base/object.ts'
import { tryParseStoredAddr } from '#lib/base/stored-ip.ts'
import type { ApiObject } from '#lib/api/resource.ts'
import { nodeAddresses, podRanges, type PodRange } from '#lib/preflight/endpoint-owner.ts'
import { finding, type Finding } from '#lib/preflight/findings.ts'

interface Taken {
  readonly addr: Addr
  readonly whose: string
}

export interface Ranges {
  readonly nodes: readonly ApiObject[]
  readonly pools: readonly ApiObject[]
  /** those of `pools` that are not there yet and may still be others: what they share is in the way */
  readonly newPools: readonly ApiObject[]
  readonly services: readonly ApiObject[]
}

/** One for each range, with the first such address, and one for each two pools that overlap. */
export function sharedAddresses({ nodes, pools, newPools, services }: Ranges): readonly Finding[] {
  const taken = [...services.flatMap(ofService), ...nodes.flatMap(ofNode)]
  const ofTaken = (code: Code, ranges: readonly PodRange[]): readonly Finding[] =>
    ranges.flatMap(({ cidr, name }) => {
      const first = taken.find(({ addr }) => cidrContains(cidr, addr))
      return first === undefined ? [] : [finding(code, name, `${formatAddr(first.addr)} (${first.whose})`)]
    })
  const old = pools.filter((pool) => !newPools.includes(pool))
  return [
    ...ofTaken('addresses-taken', podRanges([], newPools)),
    ...ofTaken('addresses-shared', podRanges(nodes, old)),
    ...overlaps(pools, newPools),
  ]
}

type Code = 'addresses-shared' | 'addresses-taken'

/** Of pools for whatever use: no address is to be given away by two. */
function overlaps(pools: readonly ApiObject[], newPools: readonly ApiObject[]): readonly Finding[] {
  const ranges = pools.flatMap((pool) => {
    const cidr = tryParseCidr(textOf(fieldsOf(pool['spec'])['cidr']))
    return cidr === undefined ? [] : [{ pool, cidr }]
  })
  return ranges.flatMap((one, at) =>
    ranges.slice(at + 1).flatMap((other) => {
      const [outer, inner] = depthOf(one.cidr) <= depthOf(other.cidr) ? [one, other] : [other, one]
      if (!cidrContains(outer.cidr, inner.cidr.addr)) return []
      const code = [one, other].some(({ pool }) => newPools.includes(pool)) ? 'addresses-taken' : 'addresses-shared'
      return [finding(code, `pool ${outer.pool.metadata.name}`, `${formatCidr(inner.cidr)} (pool ${inner.pool.metadata.name})`)]
    }),
  )
}

function ofService({ metadata: { namespace = '', name }, spec }: ApiObject): readonly Taken[] {
  const { clusterIPs } = fieldsOf(spec)
  const texts: readonly unknown[] = Array.isArray(clusterIPs) ? clusterIPs : []
  return taken(texts.map(textOf), `service ${namespace}/${name}`)
}

function ofNode(node: ApiObject): readonly Taken[] {
  return taken(nodeAddresses(node), `node ${node.metadata.name}`)
}

/** A service without an address says "None". */
function taken(texts: readonly string[], whose: string): readonly Taken[] {
  return texts.flatMap((text) => {
    const addr = tryParseStoredAddr(text)
    return addr === undefined ? [] : [{ addr, whose }]
  })
}
