// SPDX-License-Identifier: Apache-2.0
/** A cluster's addresses, as a server would list them. Layer: test. */
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { parseAddr, parseCidr, tryParseCidr } from '#lib/base/ip.ts'
import { fieldsOf, textOf } from '#lib/base/object.ts'
import { indexOf } from '#lib/base/range.ts'
import { ipBlockObject } from '#lib/kube/objects/ip-block.ts'
import type { Holder, IPBlock } from '#lib/model/ip-block.ts'
import { nodeNetwork } from '../../support/build.ts'
import { readAddresses, type ClusterAddresses } from '../../../cli/ipam/cluster.ts'

/** "shop/web", in a container of the same name. */
export function holder(name: string): Holder {
  const [namespace = '', pod = ''] = name.split('/')
  return { namespace, pod, containerId: `c-${pod}` }
}

export function block(range: string, node: string, held: Readonly<Record<string, string>> = {}): unknown {
  const cidr = parseCidr(range)
  const entries = Object.entries(held).map(([addr, name]) => [indexOf(cidr, parseAddr(addr)) ?? NaN, holder(name)] as const)
  const made: IPBlock = { cidr, node, held: new Map(entries), freed: new Map() }
  return ipBlockObject(made)
}

export async function addressesOf(...objects: readonly unknown[]): Promise<ClusterAddresses> {
  const all: readonly ApiObject[] = objects.map(asApiObject)
  return await readAddresses({ list: ({ kind }) => Promise.resolve(all.filter((one) => one.kind === kind)) })
}

/** NodeNetworks that have the blocks among the objects. */
export function announced(objects: readonly unknown[]): readonly unknown[] {
  const blocks = objects.map(fieldsOf).filter(({ kind }) => kind === 'IPAMBlock')
  const specs = blocks.map(({ spec }) => fieldsOf(spec)).filter(({ cidr }) => tryParseCidr(textOf(cidr)) !== undefined)
  const byNode = Map.groupBy(specs, ({ node }) => textOf(node))
  return [...byNode].map(([node, some]) => nodeNetwork(node, { blocks: some.map(({ cidr }) => cidr) }))
}
