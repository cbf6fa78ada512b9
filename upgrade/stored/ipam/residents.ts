// SPDX-License-Identifier: Apache-2.0
/** Who has the addresses of one stored block: living pods first, then whom it names. Layer: upgrade (pure). */
import { addrAt, rangeSize } from '#lib/base/range.ts'
import { nameKey } from '#lib/model/ref.ts'
import { finding, holderText, type AddressFinding } from './findings.ts'
import type { LivePod, LivePods } from './pods.ts'
import type { Resident } from './pieces.ts'
import { containerOf, type Allocation, type StoredBlock } from './rows.ts'

export interface Residents {
  readonly byIndex: ReadonlyMap<number, Resident>
  /** nodes that hold an address which they need, the block's own or others */
  readonly nodes: readonly string[]
  readonly findings: readonly AddressFinding[]
}

interface Found {
  readonly index: number
  readonly resident: Resident
  /** the node needs it */
  readonly isLive: boolean
  readonly finding: AddressFinding
}

/** `node`: of the block. */
export function residentsOf(block: StoredBlock, node: string, pods: LivePods): Residents {
  const named = block.allocations.map((allocation) => {
    const live = pods.byAddress.get(addrAt(block.cidr, allocation.index))
    return live === undefined ? withoutPod(block, allocation, { node, pods }) : withPod(block, live, { node, allocation })
  })
  const taken = new Set(named.map(({ index }) => index))
  const unnamed = Array.from({ length: rangeSize(block.cidr) }, (_, index) => index).flatMap((index) => {
    const live = taken.has(index) ? undefined : pods.byAddress.get(addrAt(block.cidr, index))
    return live === undefined ? [] : [withPod(block, live, { node, index })]
  })
  const all = [...named, ...unnamed].toSorted((a, b) => a.index - b.index)
  return {
    byIndex: new Map(all.map(({ index, resident }) => [index, resident])),
    nodes: [...new Set(all.filter(({ isLive }) => isLive).map(({ resident }) => resident.node))],
    findings: all.map((one) => one.finding),
  }
}

type WithPod = { readonly node: string } & ({ readonly allocation: Allocation } | { readonly index: number })

function withPod(block: StoredBlock, { pod, containerId }: LivePod, of: WithPod): Found {
  const index = 'allocation' in of ? of.allocation.index : of.index
  const isNamed = 'allocation' in of && of.allocation.namespace === pod.namespace && of.allocation.pod === pod.name
  const said = isNamed ? containerOf(of.allocation.handle) : ''
  const holder = { namespace: pod.namespace, pod: pod.name, containerId: said === '' ? containerId : said }
  const resident = { node: pod.nodeName ?? of.node, holder }
  const reason = 'allocation' in of ? carriedReason(of.allocation, { isNamed, block, resident }) : 'the block says that it is free'
  return { index, resident, isLive: true, finding: finding('carried', addrAt(block.cidr, index), { holder: nameKey(pod), reason }) }
}

function carriedReason(
  allocation: Allocation,
  { isNamed, block, resident }: { readonly isNamed: boolean; readonly block: StoredBlock; readonly resident: Resident },
): string {
  const named = holderText(allocation)
  if (!isNamed) return named === '' ? 'the block names no holder' : `the block says that ${named} has it`
  if (block.affinity.of === 'node' && block.affinity.node !== resident.node) return `borrowed by node ${resident.node}`
  return 'as the block says'
}

/** No pod says that it has the address. */
function withoutPod(block: StoredBlock, allocation: Allocation, { node, pods }: { readonly node: string; readonly pods: LivePods }): Found {
  const { index, handle, namespace, pod, use } = allocation
  const address = addrAt(block.cidr, index)
  const holder = { namespace, pod, containerId: containerOf(handle) === '' ? handle : containerOf(handle) }
  const at = allocation.node === '' ? node : allocation.node
  const isKnown = pods.podCIDRs.has(at)
  const found = (kind: AddressFinding['kind'], reason: string): Found => {
    const isLive = kind === 'carried'
    return {
      index,
      resident: { node: isLive ? at : node, holder },
      isLive,
      finding: finding(kind, address, { holder: holderText(allocation), reason }),
    }
  }
  if (use === 'tunnel' && isKnown) return found('carried', `of the tunnel of node ${at}, whose agent of this version gives it back`)
  if (use === 'service') return found('refused', 'services get no addresses of pools here')
  if (use === 'windows') return found('refused', 'Windows nodes are not supported')
  if (use === 'pod' && isKnown && pods.waiting.has(`${namespace}/${pod}`))
    return found('carried', 'its pod has not been told an address yet')
  if (!isKnown) return found('leak', `node ${at === '' ? '?' : at} is not there any more`)
  return found('leak', use === 'unknown' ? 'no pod has it, and the block names no holder' : 'no pod has it')
}
