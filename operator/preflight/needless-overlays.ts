// SPDX-License-Identifier: Apache-2.0
/** Whether pools ask for the tunnel where every node reaches every other without a router. Layer: operator (pure). */
import { isV4, parseCidr, tryParseCidr } from '#lib/base/ip.ts'
import { fieldsOf, textOf } from '#lib/base/object.ts'
import type { ApiObject } from '#lib/api/resource.ts'
import { finding, type Finding } from '#lib/preflight/findings.ts'
import type { Facts } from '#lib/preflight/report.ts'
import { namesText } from '#lib/control/names-text.ts'

/** `facts`: of each node, as it has answered. One for each subnet that all nodes are in. */
export function needlessOverlays(facts: ReadonlyMap<string, Facts>, pools: readonly ApiObject[]): readonly Finding[] {
  const subnets = facts.size < 2 ? [] : commonSubnets([...facts.values()])
  return subnets.flatMap((subnet) => {
    const names = pools
      .filter((pool) => isAlways(pool) && familyOf(pool) === isV4(parseCidr(subnet).addr))
      .map(({ metadata }) => metadata.name)
    return names.length === 0 ? [] : [finding('overlay-needless', namesText(names), subnet)]
  })
}

function commonSubnets([first, ...others]: readonly Facts[]): readonly string[] {
  return subnetsOf(first).filter((subnet) => others.every((one) => subnetsOf(one).includes(subnet)))
}

/** A node's words: what is none is left out. */
function subnetsOf(facts: Facts | undefined): readonly string[] {
  return (facts?.['subnets'] ?? '').split(',').filter((text) => tryParseCidr(text) !== undefined)
}

function isAlways({ spec }: ApiObject): boolean {
  return fieldsOf(spec)['vxlanMode'] === 'Always'
}

/** True: IPv4. The tunnel between nodes is of the pods' family. */
function familyOf({ spec }: ApiObject): boolean | undefined {
  const cidr = tryParseCidr(textOf(fieldsOf(spec)['cidr']))
  return cidr === undefined ? undefined : isV4(cidr.addr)
}
