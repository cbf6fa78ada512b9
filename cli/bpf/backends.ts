// SPDX-License-Identifier: Apache-2.0
/** The backends of a list, with all that the maps say of each. Layer: cli (pure). */
import { formatAddr, isAny } from '#lib/base/ip.ts'
import { catalogue } from '#agent/maps/catalogue.ts'
import type { Frontend, Live, LiveKey } from '#agent/maps/shapes.ts'
import type { End } from '../filter.ts'
import type { Entry, Tables } from '../map-tables.ts'
import { flagNames } from '../enum-names.ts'

export interface Backend extends End {
  /** null: new flows do not go there, but flows that have it stay */
  readonly slot: number | null
  /** null when it is this node, or not known */
  readonly node: string | null
  /** flags of np_live; null when nothing asks whether it lives: TCP without affinity */
  readonly live: readonly string[] | null
  /** of Maglev's table, 0 to 1; null where that does not choose */
  readonly share: number | null
}

export type Choice = Frontend['inside']
export type BackendReader = (choice: Choice, maglev: boolean) => Backend[]

/** Slot by slot, then those that only live. A slot that is being rewritten is left out. */
export async function backendReader(tables: Tables): Promise<BackendReader> {
  const [backends, live] = [tables.open(catalogue.np_backends), tables.open(catalogue.np_live)]
  const liveWords = flagNames(live.btf, 'live_flag')
  const kept = await keptOf(live.parts(), liveWords)
  const shares = sharesOf(tables)
  return ({ list, count }, maglev) => {
    const share = maglev ? shares(list) : undefined
    const chosen = Array.from({ length: count }, (_, slot): Backend | undefined => {
      const found = backends.get({ list, slot })
      if (found === undefined) return undefined
      const { addr, port, node } = found
      const lives = live.get({ list, addr, port })
      return {
        slot,
        addr,
        port,
        node: isAny(node) ? null : formatAddr(node),
        live: lives === undefined ? null : liveWords(lives.flags),
        share: share?.(slot) ?? null,
      }
    })
    const extra = (kept.get(list) ?? []).map((end): Backend => ({ ...end, slot: null, node: null, live: [], share: null }))
    return [...chosen.filter((one) => one !== undefined), ...extra]
  }
}

/** List → backends that are not chosen any more. All others are found from their slot. */
async function keptOf(
  parts: AsyncIterable<readonly Entry<LiveKey, Live>[]>,
  words: (flags: number) => readonly string[],
): Promise<ReadonlyMap<string, readonly End[]>> {
  const kept = new Map<string, End[]>()
  for await (const part of parts) {
    for (const [{ list, addr, port }, { flags }] of part) {
      if (!words(flags).includes('chosen')) kept.set(list, [...(kept.get(list) ?? []), { addr, port }])
    }
  }
  return kept
}

/** How much of a list's Maglev table each slot has. */
function sharesOf(tables: Tables): (list: string) => ((slot: number) => number) | undefined {
  const maglev = tables.open(catalogue.np_maglev)
  return (list) => {
    const slots = maglev.get(list)?.slot
    if (slots === undefined) return undefined
    const counts = new Map<number, number>()
    for (const slot of slots) counts.set(slot, (counts.get(slot) ?? 0) + 1)
    return (slot) => (counts.get(slot) ?? 0) / slots.length
  }
}
