// SPDX-License-Identifier: Apache-2.0
/** Where blocks, pods, nodes and what these tell each other disagree on addresses. Layer: cli (pure). */
import { formatAddr, formatCidr, type Addr } from '#lib/base/ip.ts'
import { rejectedText } from '#lib/base/result.ts'
import type { Holder, IPBlock } from '#lib/model/ip-block.ts'
import { statedAddresses } from '#lib/model/pod.ts'
import { nameKey } from '#lib/model/ref.ts'
import {
  blockFinder,
  borrowedAddresses,
  heldAddresses,
  holderName,
  podsByAddress,
  poolOf,
  useFinder,
  type AddressView,
  type Held,
} from './view.ts'

/** What each kind means, for people. */
export const PROBLEM_KINDS = {
  leaked: 'given away, and no pod has them',
  unallocated: 'of a pod, and no block has given them to it',
  shared: 'of several pods',
  borrowed: "of a pod that is on another node than the block's",
  'node-address': 'of a node or one of its devices, and in a block',
  'no-pool': 'given away, and in no IPPool',
  'no-node': 'blocks of a node that is not there',
  overlap: 'blocks that overlap',
  'not-announced': 'blocks of which no other node knows',
  announced: 'blocks that a node announces, and does not have',
  unreadable: 'objects that cannot be read',
} as const

export type ProblemKind = keyof typeof PROBLEM_KINDS

export interface AddressProblem {
  readonly kind: ProblemKind
  readonly address?: string
  readonly block?: string
  /** of a leaked one: whose it was */
  readonly holder?: Holder
  readonly reason: string
}

/** In the order of {@link PROBLEM_KINDS}. */
export function findProblems(view: AddressView): readonly AddressProblem[] {
  const held = heldAddresses(view.blocks)
  return [
    ...leaked(view, held),
    ...unallocated(view, held),
    ...shared(view, held),
    ...borrowedAddresses(view).map(({ addr, block, pod }) =>
      atAddress('borrowed', { addr, block }, `pod ${nameKey(pod)} is on node ${pod.nodeName ?? '-'}, the block is of node ${block.node}`),
    ),
    ...nodeAddresses(view),
    ...held
      .filter(({ addr }) => poolOf(view.pools, addr) === undefined)
      .map(({ addr, block, holder }) => atAddress('no-pool', { addr, block }, `pod ${holderName(holder)} has it, and no IPPool`)),
    ...blockProblems(view),
    ...notAnnounced(view),
    ...wronglyAnnounced(view),
    ...view.unreadable.map((one): AddressProblem => ({ kind: 'unreadable', reason: rejectedText(one) })),
  ]
}

function leaked({ pods }: AddressView, held: readonly Held[]): readonly AddressProblem[] {
  const useOf = useFinder(pods)
  return held
    .filter((one) => useOf(one) === undefined)
    .map(({ addr, block, holder }) => ({ ...atAddress('leaked', { addr, block }, `pod ${holderName(holder)} does not have it`), holder }))
}

function unallocated({ blocks, pods, pools }: AddressView, held: readonly Held[]): readonly AddressProblem[] {
  const given = new Set(held.map(({ addr }) => addr))
  const blockOf = blockFinder(blocks)
  return [...podsByAddress(pods)].flatMap(([addr, [pod]]) => {
    const block = blockOf(addr)
    // of a range that Kubernetes gave to the node, the node alone has the block
    if (pod === undefined || given.has(addr) || (block === undefined && poolOf(pools, addr) === undefined)) return []
    return [atAddress('unallocated', { addr, block }, `pod ${nameKey(pod)} has it`)]
  })
}

function shared({ pods, blocks }: AddressView, held: readonly Held[]): readonly AddressProblem[] {
  const holders = Map.groupBy(held, ({ addr }) => addr)
  const blockOf = blockFinder(blocks)
  return [...podsByAddress(pods)].flatMap(([addr, all]) => {
    const names = [...new Set([...all.map(nameKey), ...(holders.get(addr) ?? []).map(({ holder }) => holderName(holder))])]
    return names.length < 2 ? [] : [atAddress('shared', { addr, block: blockOf(addr) }, `pods ${names.join(', ')}`)]
  })
}

function nodeAddresses({ nodes, networks, blocks }: AddressView): readonly AddressProblem[] {
  const blockOf = blockFinder(blocks)
  const devices = networks.flatMap(({ name, interfaces = [] }) =>
    interfaces.flatMap((one) => one.addresses.map((addr) => [addr, `device ${one.name} of node ${name}`] as const)),
  )
  // by its Node an address is named first, once
  const owners = new Map([...devices, ...nodes.flatMap(({ name, addresses }) => addresses.map((addr) => [addr, `node ${name}`] as const))])
  return [...owners].flatMap(([addr, owner]) => {
    const block = blockOf(addr)
    return block === undefined ? [] : [atAddress('node-address', { addr, block }, `${owner} has it`)]
  })
}

function blockProblems({ blocks, nodes }: AddressView): readonly AddressProblem[] {
  const names = new Set(nodes.map(({ name }) => name))
  const left = blocks.filter(({ node }) => !names.has(node))
  return [
    ...left.map(({ cidr, node }): AddressProblem => ({ kind: 'no-node', block: formatCidr(cidr), reason: `there is no node ${node}` })),
    ...overlapping(blocks).map(([one, other]): AddressProblem => ({
      kind: 'overlap',
      block: formatCidr(other.cidr),
      reason: `${formatCidr(one.cidr)} of node ${one.node}, ${formatCidr(other.cidr)} of node ${other.node}`,
    })),
  ]
}

/** Packets to the pods of such a block do not find its node. */
function notAnnounced({ blocks, nodes, networks }: AddressView): readonly AddressProblem[] {
  const isThere = new Set(nodes.map(({ name }) => name))
  const announced = new Map(networks.map(({ name, blocks: some }) => [name, new Set(some.map(formatCidr))]))
  return blocks.flatMap(({ cidr, node }): readonly AddressProblem[] => {
    const [block, known] = [formatCidr(cidr), announced.get(node)]
    if (!isThere.has(node) || known?.has(block) === true) return []
    const reason = known === undefined ? `node ${node} has no NodeNetwork` : `the NodeNetwork of node ${node} does not have it`
    return [{ kind: 'not-announced', block, reason }]
  })
}

/** Packets to the pods of such a block may go to this node. */
function wronglyAnnounced({ blocks, networks }: AddressView): readonly AddressProblem[] {
  const nodeOf = new Map(blocks.map(({ cidr, node }) => [formatCidr(cidr), node]))
  return networks.flatMap(({ name, blocks: some }) =>
    some.map(formatCidr).flatMap((block): readonly AddressProblem[] => {
      const owner = nodeOf.get(block)
      if (owner === name) return []
      return [
        { kind: 'announced', block, reason: `node ${name} does, ${owner === undefined ? 'no node has' : `node ${owner} has`} the block` },
      ]
    }),
  )
}

/** Pairs of a block and one within it. */
function overlapping(blocks: readonly IPBlock[]): readonly (readonly [IPBlock, IPBlock])[] {
  return [...Map.groupBy(blocks, ({ cidr }) => cidr.bits)].flatMap(([bits, alike]) => {
    const outerOf = blockFinder(blocks.filter(({ cidr }) => cidr.bits < bits))
    return alike.flatMap((inner) => {
      const outer = outerOf(inner.cidr.addr)
      return outer === undefined ? [] : [[outer, inner] as const]
    })
  })
}

interface Place {
  readonly addr: Addr
  readonly block: IPBlock | undefined
}

function atAddress(kind: ProblemKind, { addr, block }: Place, reason: string): AddressProblem {
  return { kind, address: formatAddr(addr), ...(block && { block: formatCidr(block.cidr) }), reason }
}

/** Addresses of pods and of blocks, each once. */
export function countAddresses({ blocks, pods }: AddressView): { readonly held: number; readonly ofPods: number } {
  return { held: heldAddresses(blocks).length, ofPods: new Set(pods.flatMap(statedAddresses)).size }
}
