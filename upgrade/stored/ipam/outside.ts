// SPDX-License-Identifier: Apache-2.0
/** Pods whose addresses no stored block has. Layer: upgrade (pure). */
import { cidrContains, formatCidr, maskAddr, type Addr, type Cidr } from '#lib/base/ip.ts'
import { by, compareText, sorted } from '#lib/base/order.ts'
import { PrefixMap } from '#lib/base/prefix-map.ts'
import { indexOf, overlaps } from '#lib/base/range.ts'
import type { IPPool } from '#lib/model/ip-pool.ts'
import { nameKey } from '#lib/model/ref.ts'
import type { Outcome } from '../outcome.ts'
import { outcomeWith } from './block-outcome.ts'
import { finding, type AddressFinding } from './findings.ts'
import { piecesOf } from './pieces.ts'
import { isOfPodCidr, type LivePod, type LivePods } from './pods.ts'
import type { StoredBlock } from './rows.ts'

export interface OutsideContext {
  readonly live: LivePods
  readonly pools: readonly IPPool[]
}

/** Of the range of their node, of a pool, or of another plugin. */
export function outsideBlocks(
  blocks: readonly StoredBlock[],
  { live, pools }: OutsideContext,
): { readonly outcomes: readonly Outcome[]; readonly findings: readonly AddressFinding[] } {
  const stored = new PrefixMap<true>()
  for (const { cidr } of blocks) stored.set(cidr, true)
  const rest = sorted(
    live.byAddress,
    by(([address]) => address, compareText),
  ).filter(([address]) => stored.find(address) === undefined)
  const placed = rest.map(([address, pod]) => ({ address, pod, place: placeOf(address, pod, { live, pools, blocks }) }))
  const byBlock = Map.groupBy(
    placed.filter(({ place }) => place.kind === 'pool'),
    ({ place }) => (place.kind === 'pool' ? formatCidr(place.cidr) : ''),
  )
  return {
    outcomes: [...byBlock.values()].flatMap((members) => madeBlocks(members)),
    findings: placed.map(({ address, pod, place }) =>
      finding(place.kind === 'nowhere' ? 'refused' : 'carried', address, { holder: nameKey(pod.pod), reason: REASONS[place.kind] }),
    ),
  }
}

const REASONS = {
  range: "of its node's podCIDR",
  pool: 'no block is stored: one is made',
  plugin: 'another plugin has given it',
  nowhere: "is in no stored block, in no pool and not in its node's podCIDR",
} as const

type Place = { readonly kind: 'range' | 'plugin' | 'nowhere' } | { readonly kind: 'pool'; readonly cidr: Cidr }

interface PlaceContext extends Pick<OutsideContext, 'live' | 'pools'> {
  readonly blocks: readonly StoredBlock[]
}

function placeOf(address: Addr, pod: LivePod, { live, pools, blocks }: PlaceContext): Place {
  if (isOfPodCidr(live, pod, address)) return { kind: 'range' }
  // no address of this installation is of a block
  if (blocks.length === 0) return { kind: 'plugin' }
  const pool = pools.find(({ cidr }) => cidrContains(cidr, address))
  const cidr = pool && { addr: maskAddr(address, pool.blockBits), bits: pool.blockBits }
  return cidr === undefined || blocks.some((block) => overlaps(block.cidr, cidr)) ? { kind: 'nowhere' } : { kind: 'pool', cidr }
}

interface Placed {
  readonly address: Addr
  readonly pod: LivePod
  readonly place: Place
}

function madeBlocks(members: readonly Placed[]): readonly Outcome[] {
  const [first] = members
  if (first?.place.kind !== 'pool') return []
  const { cidr } = first.place
  const residents = members.flatMap(({ address, pod: { pod, containerId } }) => {
    const index = indexOf(cidr, address)
    const holder = { namespace: pod.namespace, pod: pod.name, containerId }
    return index === undefined ? [] : [[index, { node: pod.nodeName ?? '', holder }] as const]
  })
  const pieces = piecesOf({ cidr, node: first.pod.pod.nodeName ?? '', residents: new Map(residents), freed: new Map() })
  return pieces.map((piece) => {
    const after = formatCidr(piece.cidr)
    return outcomeWith(undefined, piece, [{ field: 'spec.cidr', before: undefined, after, why: REASONS.pool }])
  })
}
