// SPDX-License-Identifier: Apache-2.0
/** Which pools a pod may have an address of. Layer: lib/ipam (pure). */
import { AddressError } from '../base/errors.ts'
import { cidrContains, formatAddr, formatCidr, isV4 } from '../base/ip.ts'
import type { Addr } from '../base/ip.ts'
import { by, compareText, sorted } from '../base/order.ts'
import type { IPPool } from '../model/ip-pool.ts'
import { NO_LABELS } from '../model/labels.ts'
import type { Namespace } from '../model/namespace.ts'
import type { Node } from '../model/node.ts'
import { selects } from '../model/selector/selector.ts'
import type { Family } from '../model/service.ts'
import { FIXED } from './ip-annotations.ts'
import type { NamedPools } from './ip-annotations.ts'

/** Where a pod is. */
export interface PoolQuery {
  readonly pools: Iterable<IPPool>
  readonly family: Family
  readonly node: Pick<Node, 'name' | 'labels'>
  readonly namespace: Pick<Namespace, 'name' | 'labels'> | undefined
}

/** In the order in which they are to be tried. Undefined: there is no pool of this family at all. Throws
 * AddressError. */
export function choosePools(query: PoolQuery, named: NamedPools | undefined): readonly IPPool[] | undefined {
  const all = sorted(
    [...query.pools].filter(({ cidr }) => isV4(cidr.addr) === (query.family === 'IPv4')),
    by(({ name }) => name, compareText),
  )
  if (named !== undefined) return named.names.map((name) => poolNamed(name, { all, named, query }))
  if (all.length === 0) return undefined
  const open = all.filter((pool) => pool.assigns === 'all' && whyNot(pool, query) === undefined)
  if (open.length > 0) return open
  // with neither words nor a pool for all, the pod has the other family alone
  if (all.every(({ assigns }) => assigns !== 'all')) return undefined
  const reasons = all.filter(({ assigns }) => assigns === 'all').map((pool) => `${pool.name}: ${whyNot(pool, query) ?? ''}`)
  throw new AddressError({ ref: `Node/${query.node.name}`, reason: `no IPPool of ${query.family} is for this pod: ${reasons.join('; ')}` })
}

/** The pool that has the address; a pool that assigns nothing of its own accord still has its addresses. Throws
 * AddressError. */
export function poolOfFixed(addr: Addr, { query, ref }: { readonly query: Omit<PoolQuery, 'family'>; readonly ref: string }): IPPool {
  const refuse = (reason: string): never => {
    throw new AddressError({ ref, path: `metadata.annotations['${FIXED}']`, reason })
  }
  const around = sorted(
    [...query.pools].filter(({ cidr }) => cidrContains(cidr, addr)),
    (a, b) => b.cidr.bits - a.cidr.bits || compareText(a.name, b.name),
  )
  const [pool] = around
  if (pool === undefined) return refuse(`no IPPool has ${formatAddr(addr)}`)
  const why = pool.assigns === 'none' ? 'is disabled' : whyNot(pool, query)
  return why === undefined ? pool : refuse(`IPPool ${pool.name} (${formatCidr(pool.cidr)}), which has ${formatAddr(addr)}, ${why}`)
}

function poolNamed(name: string, of: { readonly all: readonly IPPool[]; readonly named: NamedPools; readonly query: PoolQuery }): IPPool {
  const refuse = (reason: string): never => {
    throw new AddressError({ ref: of.named.ref, path: of.named.path, reason })
  }
  const pool = of.all.find((one) => one.name === name || formatCidr(one.cidr) === name)
  if (pool === undefined) return refuse(`there is no IPPool ${name} of ${of.query.family}`)
  const why = pool.assigns === 'none' ? 'is disabled' : whyNot(pool, of.query)
  return why === undefined ? pool : refuse(`IPPool ${pool.name} ${why}`)
}

/** What keeps this pod from it. */
function whyNot(pool: IPPool, { node, namespace }: Omit<PoolQuery, 'family' | 'pools'>): string | undefined {
  if (!selects(pool.nodes, node.labels)) return `is not for node ${node.name}: nodeSelector`
  if (!selects(pool.namespaces, namespace?.labels ?? NO_LABELS))
    return `is not for namespace ${namespace?.name ?? 'that is not known'}: namespaceSelector`
  return undefined
}
