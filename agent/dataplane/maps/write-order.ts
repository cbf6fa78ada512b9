// SPDX-License-Identifier: Apache-2.0
/** Rows that wait: what speaks of a list keeps its last good value until all of the list is in.
 * Layer: agent/dataplane (pure). */
import { FRONTEND_RANGES } from '#lib/base/bpf-constants.ts'
import type { ListId } from '../../compile/desired.ts'
import { catalogue } from '../../maps/catalogue.ts'
import { decodeText } from '../../maps/byte-rows.ts'
import type { BindMap } from './encode-rows.ts'
import type { IsHeld, MapTable } from './map-table.ts'

/** By table; undefined: no row has to wait at present. */
export interface WriteGate {
  writes(table: string): IsHeld | undefined
  removals(table: string): ((key: string) => boolean) | undefined
}

export type GatedTables = Readonly<Record<'backends' | 'ranges' | 'frontends', Pick<MapTable, 'pendingRows' | 'actualAt'>>>

type ListsOf = (key: string) => readonly ListId[]

export function writeGateFor(bind: BindMap, tables: GatedTables): WriteGate {
  const [backends, maglev, live, ranges] = [
    bind(catalogue.np_backends).key,
    bind(catalogue.np_maglev).key,
    bind(catalogue.np_live).key,
    bind(catalogue.np_ranges).key,
  ]
  const frontends = bind(catalogue.np_frontends).value
  const ofKeys: ReadonlyMap<string, ListsOf> = new Map([
    ['backends', (key: string) => [decodeText(backends, key).list]],
    ['maglev', (key: string) => [decodeText(maglev, key)]],
    ['live', (key: string) => [decodeText(live, key).list]],
    ['ranges', (key: string) => [decodeText(ranges, key).set]],
  ])
  const unwritten = (table: 'backends' | 'ranges'): ReadonlySet<ListId> =>
    new Set([...tables[table].pendingRows().keys()].flatMap((key) => ofKeys.get(table)?.(key) ?? []))
  const listsIn = (frontend: string): readonly ListId[] => {
    const { inside, outside } = decodeText(frontends, frontend)
    return [inside.list, outside.list]
  }
  /** Lists that frontends in the kernel choose from, and will no longer when they are written. */
  const left = (): ReadonlySet<ListId> => {
    const rows = [...tables.frontends.pendingRows()]
    return new Set(
      rows.flatMap(([key, wanted]) => {
        const actual = tables.frontends.actualAt(key)
        const stay = listsIn(wanted)
        return actual === undefined ? [] : listsIn(actual).filter((list) => !stay.includes(list))
      }),
    )
  }
  return {
    writes(table) {
      const listsOf = table === 'maglev' || table === 'live' ? ofKeys.get(table) : undefined
      if (listsOf === undefined && table !== 'frontends') return undefined
      const [waiting, open] = [unwritten('backends'), table === 'frontends' ? unwritten('ranges') : new Set<ListId>()]
      if (waiting.size + open.size === 0) return undefined
      if (listsOf !== undefined) return ([key]) => listsOf(key).some((list) => waiting.has(list))
      return ([, value]) => {
        const { inside, outside, flags } = decodeText(frontends, value)
        return waiting.has(inside.list) || waiting.has(outside.list) || ((flags & FRONTEND_RANGES) !== 0 && open.has(inside.list))
      }
    },
    removals(table) {
      const listsOf = ofKeys.get(table)
      if (listsOf === undefined) return undefined
      // rows that wait may still count on old backends
      const kept = new Set([...left(), ...(table === 'backends' ? unwritten('backends') : [])])
      return kept.size === 0 ? undefined : (key) => listsOf(key).some((list) => kept.has(list))
    },
  }
}
