// SPDX-License-Identifier: Apache-2.0
/** Pools of an Installation: each is made once, and then the administrator's. Layer: operator (pure). */
import { isObject } from '#lib/base/object.ts'
import { depthOf, formatCidr, isV4, parseCidr, prefixKey, type Cidr } from '#lib/base/ip.ts'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import type { InstallationSpec } from '#lib/render/computed.ts'

type Pool = NonNullable<InstallationSpec['netplaneNetwork']>['ipPools'][number]

const VXLAN_MODES = { VXLANCrossSubnet: 'CrossSubnet', VXLAN: 'Always', None: 'Never' } as const

/** Those of which there is none yet. One with the same range, by whatever name, is adopted as it is. */
export function poolsToMake(pools: readonly Pool[], found: Iterable<ApiObject>): readonly ApiObject[] {
  const ranges = new Set([...found].flatMap((pool) => rangeOf(pool) ?? []))
  return pools.filter(({ cidr }) => !ranges.has(keyOf(cidr))).map(poolObject)
}

function poolObject({ name, cidr, encapsulation, natOutgoing, blockSize, nodeSelector }: Pool): ApiObject {
  return asApiObject({
    apiVersion: 'netplane.io/v3',
    kind: 'IPPool',
    metadata: { name: name ?? nameOf(cidr) },
    spec: {
      cidr: formatCidr(cidr),
      vxlanMode: VXLAN_MODES[encapsulation ?? 'VXLANCrossSubnet'],
      natOutgoing: natOutgoing !== 'Disabled',
      ...(blockSize === undefined ? {} : { blockSize }),
      ...(nodeSelector === undefined ? {} : { nodeSelector }),
    },
  })
}

/** "10-1-0-0-16" */
function nameOf(cidr: Cidr): string {
  return `${isV4(cidr.addr) ? 'ipv4' : 'ipv6'}-${formatCidr(cidr).replaceAll(/[^0-9a-f]+/g, '-')}`
}

function rangeOf({ spec }: ApiObject): string | undefined {
  const cidr = isObject(spec) ? spec['cidr'] : undefined
  if (typeof cidr !== 'string') return undefined
  try {
    return keyOf(parseCidr(cidr))
  } catch {
    return undefined
  }
}

function keyOf(cidr: Cidr): string {
  return prefixKey(cidr.addr, depthOf(cidr))
}
