// SPDX-License-Identifier: Apache-2.0
/** Lists of backends → the rows that hold them. Layer: agent/compile (pure). */
import type { Sliced } from '#lib/base/async/slices.ts'
import { LIVE_CHOSEN, OWN_SLOTS } from '#lib/base/bpf-constants.ts'
import { ANY_V4, ANY_V6, isV4 } from '#lib/base/ip.ts'
import type { Addr } from '#lib/base/ip.ts'
import { compareText } from '#lib/base/order.ts'
import type { BackendRow, ListId, LiveRow, MaglevRow, Row } from '../desired.ts'
import type { Target } from './endpoints.ts'
import { maglevSlots } from './maglev.ts'

export interface BackendList {
  readonly id: ListId
  /** in the order of their slots */
  readonly targets: readonly Target[]
  /** those of this node, whose flows other nodes may have begun */
  readonly own: readonly Target[]
  /** those that flows may stay with; undefined where that is not asked */
  readonly live: readonly Target[] | undefined
  readonly maglev: boolean
}

/** The address of that family of another node; undefined for this node and for an unknown one. */
export type OtherNode = (name: string, v4: boolean) => Addr | undefined

/** Table by table, each sorted by key. */
export function* listRows(lists: readonly BackendList[], otherNode: OtherNode): Sliced<readonly Row[]> {
  const sorted = [...lists].sort((a, b) => compareText(a.id, b.id))
  const [backends, live, maglev]: [BackendRow[], LiveRow[], MaglevRow[]] = [[], [], []]
  for (const list of sorted) {
    const { id, targets, own } = list
    targets.forEach((target, slot) => backends.push(backendRow(id, { target, slot, otherNode })))
    own.forEach((target, index) => backends.push(backendRow(id, { target, slot: OWN_SLOTS + index, otherNode })))
    for (const row of liveRows(list)) live.push(row)
    if (list.maglev) maglev.push(maglevRow(list))
    yield
  }
  return [...backends, ...live, ...maglev]
}

function backendRow(list: ListId, of: { readonly target: Target; readonly slot: number; readonly otherNode: OtherNode }): BackendRow {
  const { addr, port, nodeName } = of.target
  const v4 = isV4(addr)
  const node = nodeName === undefined ? undefined : of.otherNode(nodeName, v4)
  return { table: 'backends', key: { list, slot: of.slot }, value: { addr, node: node ?? (v4 ? ANY_V4 : ANY_V6), port, flags: 0 } }
}

function liveRows({ id, targets, live }: BackendList): readonly LiveRow[] {
  if (live === undefined) return []
  const slots = new Map(targets.map((target, slot) => [target, slot]))
  return live.map((target) => {
    const slot = slots.get(target)
    const value = slot === undefined ? { flags: 0, slot: 0 } : { flags: LIVE_CHOSEN, slot }
    return { table: 'live', key: { list: id, addr: target.addr, port: target.port }, value }
  })
}

function maglevRow({ id, targets }: BackendList): MaglevRow {
  return { table: 'maglev', key: { list: id }, value: { slots: maglevSlots(targets) } }
}
