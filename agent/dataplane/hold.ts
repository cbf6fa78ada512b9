// SPDX-License-Identifier: Apache-2.0
/** Rows that wait: what speaks of a list keeps its last good value until all backends of the list are in. Layer: agent/dataplane (pure). */
import type { ListId } from '../compile/desired.ts'
import { catalogue } from '../maps/catalogue.ts'
import { decodeText } from '../maps/text.ts'
import type { BindMap } from './rows.ts'
import type { IsHeld } from './table.ts'

/** By table; undefined: no row has to wait at present. */
export interface Holds {
  writes(table: string): IsHeld | undefined
  removals(table: string): ((key: string) => boolean) | undefined
}

/** `pending`: keys of backends that are still to be written. */
export function holdsFor(bind: BindMap, pending: () => Iterable<string>): Holds {
  const backends = bind(catalogue.np_backends).key
  const listOf = (key: string): ListId => decodeText(backends, key).list
  const [maglev, live, frontends] = [bind(catalogue.np_maglev).key, bind(catalogue.np_live).key, bind(catalogue.np_frontends).value]
  const speakers: ReadonlyMap<string, (key: string, value: string) => readonly ListId[]> = new Map([
    ['maglev', (key: string) => [decodeText(maglev, key)]],
    ['live', (key: string) => [decodeText(live, key).list]],
    [
      'frontends',
      (_: string, value: string) => {
        const { inside, outside } = decodeText(frontends, value)
        return [inside.list, outside.list]
      },
    ],
  ])
  return {
    writes(table) {
      const speaksOf = speakers.get(table)
      const waiting = speaksOf === undefined ? undefined : new Set([...pending()].map(listOf))
      if (speaksOf === undefined || waiting === undefined || waiting.size === 0) return undefined
      return ([key, value]) => speaksOf(key, value).some((list) => waiting.has(list))
    },
    removals(table) {
      // rows that wait may still count on old backends
      const waiting = table === 'backends' ? new Set([...pending()].map(listOf)) : new Set<ListId>()
      return waiting.size === 0 ? undefined : (key) => waiting.has(listOf(key))
    },
  }
}
