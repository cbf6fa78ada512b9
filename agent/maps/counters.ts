// SPDX-License-Identifier: Apache-2.0
/** The slots of np_counters by name, and what has been counted in them. Layer: agent/maps. */
import { enumValues, type Btf } from './btf.ts'
import { LITTLE_ENDIAN, viewOf } from './view.ts'

/** What it needs of np_counters; `BpfMap` has it. */
export interface CounterMap {
  lookup(key: Uint8Array): Uint8Array | undefined
}

/** `name` as metrics and tools say it: DROP_NO_BACKEND is the drop "no_backend". */
export interface Counter {
  readonly kind: 'drop' | 'event'
  readonly name: string
  readonly slot: number
}

/** Name ("DROP_TTL", "COUNT_CONNECT") → slot of np_counters: drop reasons first, then the other counters. */
export function counterSlots(btf: Btf): Map<string, number> {
  const [drops, counters] = [enumValues(btf, 'drop'), enumValues(btf, 'counter')]
  const max = drops.get('DROP_MAX') ?? 0
  const slots = new Map([...drops, ...[...counters].map(([name, value]): [string, number] => [name, max + value])])
  for (const end of ['DROP_MAX', 'COUNT_MAX']) slots.delete(end)
  return slots
}

/** Those that count something: DROP_NONE does not. */
export function namedCounters(slots: ReadonlyMap<string, number>): Counter[] {
  return [...slots].flatMap(([name, slot]): Counter[] => {
    if (name === 'DROP_NONE') return []
    const kind = name.startsWith('DROP_') ? 'drop' : 'event'
    return [{ kind, name: name.slice(name.indexOf('_') + 1).toLowerCase(), slot }]
  })
}

/** Of all CPUs together. */
export function counterTotal(map: CounterMap, slot: number): number {
  const values = map.lookup(counterKey(slot))
  if (values === undefined) return 0
  const view = viewOf(values)
  let total = 0
  for (let at = 0; at < values.length; at += 8) total += Number(view.getBigUint64(at, LITTLE_ENDIAN))
  return total
}

export function counterKey(slot: number): Uint8Array {
  return new Uint8Array(new Uint32Array([slot]).buffer)
}
