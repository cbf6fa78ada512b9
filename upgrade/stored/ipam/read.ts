// SPDX-License-Identifier: Apache-2.0
/** Stored blocks, and pods with their addresses → the blocks of this version. Layer: upgrade (pure). */
import { formatAddr, formatCidr } from '#lib/base/ip.ts'
import { FieldError, own } from '#lib/kube/parse/fields.ts'
import { isObject } from '#lib/base/object.ts'
import type { IPBlock } from '#lib/model/ip-block.ts'
import type { IPPool } from '#lib/model/ip-pool.ts'
import type { StoredObject } from '../metadata.ts'
import { pathOf, valueAt } from '../edit.ts'
import type { Difference, Outcome } from '../outcome.ts'
import { outcomeWith } from './block-outcome.ts'
import type { AddressFinding } from './findings.ts'
import { piecesOf } from './pieces.ts'
import { outsideBlocks } from './outside.ts'
import { livePods, type LivePods } from './pods.ts'
import { residentsOf, type Residents } from './residents.ts'
import { isDeleted, storedAffinity, storedBlock, type StoredAffinity, type StoredBlock } from './rows.ts'

export interface AddressInput {
  readonly stored: readonly StoredObject[]
  /** as the API server gives them */
  readonly pods: readonly unknown[]
  readonly nodes: readonly unknown[]
  readonly pools: readonly IPPool[]
  /** ms since 1970 */
  readonly now: number
}

export interface ReadAddresses {
  readonly outcomes: readonly Outcome[]
  readonly findings: readonly AddressFinding[]
}

/** What is read of the rows, before they are made blocks. */
interface Rows {
  readonly blocks: readonly StoredBlock[]
  readonly affinities: readonly StoredAffinity[]
  readonly outcomes: readonly Outcome[]
}

export function readAddresses({ stored, pods, nodes, pools, now }: AddressInput): ReadAddresses {
  const { blocks, affinities, outcomes } = readRows(stored)
  const live = livePods(pods, nodes)
  const read = blocks.map((block) => readBlock(block, { live, affinities, now }))
  const others = outsideBlocks(blocks, { live, pools })
  const faults = live.faults.map(({ address, ...of }): AddressFinding => ({
    kind: 'refused',
    address: address === undefined ? '' : formatAddr(address),
    ...of,
  }))
  return {
    outcomes: [...read, others].flatMap((one) => one.outcomes).concat(outcomes),
    findings: [...[...read, others].flatMap((one) => one.findings), ...faults],
  }
}

function readRows(stored: readonly StoredObject[]): Rows {
  const blocks: StoredBlock[] = []
  const affinities: StoredAffinity[] = []
  const outcomes = stored.flatMap((one): readonly Outcome[] => {
    const { ref: of } = one
    if (isDeleted(one)) return [{ kind: 'left', of, reason: 'it is deleted' }]
    try {
      if (of.kind === 'IPAMBlock') blocks.push(storedBlock(one))
      if (of.kind === 'IPAMBlock') return []
      if (of.kind === 'BlockAffinity') affinities.push(storedAffinity(one))
      return [of.kind === 'IPAMConfig' ? configOutcome(one) : { kind: 'left', of, reason: 'the block says the same' }]
    } catch (thrown) {
      if (!(thrown instanceof FieldError)) throw thrown
      const { path: field, reason } = thrown
      return [{ kind: 'refused', of, faults: [{ field, value: valueAt({ spec: one.spec }, pathOf(field)), reason }] }]
    }
  })
  return { blocks, affinities, outcomes }
}

function configOutcome({ ref: of, spec }: StoredObject): Outcome {
  const value = isObject(spec) ? own(spec, 'autoAllocateBlocks') : undefined
  return value === false
    ? { kind: 'refused', of, faults: [{ field: 'spec.autoAllocateBlocks', value, reason: 'nodes take blocks by themselves in any case' }] }
    : { kind: 'left', of, reason: 'nodes lend each other no addresses in any case, and take as many blocks as they need' }
}

interface BlockContext {
  readonly live: LivePods
  readonly affinities: readonly StoredAffinity[]
  readonly now: number
}

function readBlock(block: StoredBlock, { live, affinities, now }: BlockContext): ReadAddresses {
  const { of } = block
  if (block.affinity.of === 'services')
    return {
      outcomes: [
        { kind: 'refused', of, faults: [{ field: 'spec.affinity', value: 'virtual', reason: 'services get no addresses of pools here' }] },
      ],
      findings: residentsOf(block, '', live).findings,
    }
  const said = nodeOf(block, affinities)
  const residents = residentsOf(block, said, live)
  const node = nodeFor(said, { residents, live })
  if (node === '')
    return { outcomes: [{ kind: 'left', of, reason: 'it is of no node, and no pod has an address of it' }], findings: residents.findings }
  const pieces = piecesOf({
    cidr: block.cidr,
    node,
    residents: wholeResidents(residents, { said, node }),
    freed: freedOf(block, residents, now),
  })
  return { outcomes: pieces.map((piece) => blockOutcome(piece, { block, said })), findings: residents.findings }
}

/** Its own word, else that of the affinity. */
function nodeOf({ cidr, affinity }: StoredBlock, affinities: readonly StoredAffinity[]): string {
  if (affinity.of === 'node') return affinity.node
  return affinities.find((one) => one.isConfirmed && one.cidr === formatCidr(cidr))?.node ?? ''
}

/** A block of which one other node alone needs addresses goes to that node as a whole. */
function nodeFor(said: string, { residents, live }: { readonly residents: Residents; readonly live: LivePods }): string {
  const [only, other] = residents.nodes
  if (only === undefined) return said
  return other === undefined || !live.podCIDRs.has(said) ? only : said
}

/** What leaked goes with the block. */
function wholeResidents({ byIndex }: Residents, { said, node }: { readonly said: string; readonly node: string }): Residents['byIndex'] {
  return new Map([...byIndex].map(([index, resident]) => [index, resident.node === said ? { ...resident, node } : resident]))
}

/** The queue begins with addresses that were never given, in their order. Those after that were given back: they rest
 * once more, the first of them for the shortest time. */
function freedOf({ free }: StoredBlock, { byIndex }: Residents, now: number): ReadonlyMap<number, number> {
  const begin = free.findIndex((index, at) => index < (free[at - 1] ?? -1))
  const back = begin < 0 ? [] : free.slice(begin).filter((index) => !byIndex.has(index))
  return new Map(back.map((index, at) => [index, now - back.length + at]))
}

function blockOutcome(piece: IPBlock, { block, said }: { readonly block: StoredBlock; readonly said: string }): Outcome {
  const [before, after] = [formatCidr(block.cidr), formatCidr(piece.cidr)]
  const differences: readonly Difference[] = [
    ...(before === after
      ? []
      : [{ field: 'spec.cidr', before, after, why: 'pods of several nodes have its addresses, and nodes lend each other none' }]),
    ...(said === piece.node
      ? []
      : [{ field: 'spec.node', before: said, after: piece.node, why: 'the pods that have its addresses are on this node' }]),
  ]
  return outcomeWith(block.of, piece, differences)
}
