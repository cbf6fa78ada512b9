// SPDX-License-Identifier: Apache-2.0
/** The maps that all programs share: adopted by pin when they are as wanted, else made again and filled from the old
 * ones. Layer: agent/dataplane. */
import { BpfMap, BpfObject, possibleCpus, type MapSpec } from '#native'
import { MapError, errorCode, errorText } from '#lib/base/errors.ts'
import type { MapSizes } from '../../compile/desired.ts'
import { catalogue, type MapName } from '../../maps/catalogue.ts'
import { layoutSignature } from '../../maps/copy-entries.ts'
import { counterSlots } from '../../maps/counters.ts'
import { layoutOf } from '../../maps/layout.ts'
import type { FlowTimeouts } from '../conntrack/reader.ts'
import { fillRecent } from '../conntrack/recent.ts'
import { carrierOf, typesOf, type Carrier } from './migrate-map.ts'
import { PROG_ARRAY, type OpenObject } from './objects.ts'
import { movePin, removePins, type Pins } from '../pins.ts'

export interface PinnedOptions {
  readonly pins: Pins
  readonly objects: readonly OpenObject[]
  readonly sizes: MapSizes
  /** of flows, which say what a full flow table leaves behind */
  readonly timeouts: FlowTimeouts
}

/** A pinned map that was not as wanted and has been replaced. */
export interface Replacement {
  readonly map: MapName
  /** "max_entries 1000 instead of 2000" */
  readonly reason: string
  /** entries carried over */
  readonly copied: number
  /** why nothing could be carried over; undefined when it could, or need not be */
  readonly lost: string | undefined
}

/** The caller closes it. */
export interface SharedMaps extends Disposable {
  readonly maps: ReadonlyMap<MapName, BpfMap>
  /** found as wanted */
  readonly adopted: readonly MapName[]
  readonly created: readonly MapName[]
  readonly replaced: readonly Replacement[]
  /** Must be called once every hook runs programs on the new maps. Copies what old programs still wrote into the old
   * maps, and then lets go of those. That includes old maps that an earlier agent left before it came to this. Returns
   * how many entries. */
  finish(): Promise<number>
  /** Nothing runs on the new maps, nor will: those that they were filled from have their place back. */
  undo(): void
}

/** BPF_MAP_TYPE_ARRAY, BPF_MAP_TYPE_LRU_HASH */
const ARRAY = 2
const LRU_HASH = 9

/** Rows that a CPU takes of an LRU map at a time, for itself, before Linux 6.16. */
const LRU_TAKEN = 128

interface Wanted {
  readonly name: MapName
  readonly object: OpenObject
  readonly spec: MapSpec
}

/** Needs no program to be loaded. Throws MapError; then no pin was changed for the map it names. */
export async function ensureMaps(options: PinnedOptions): Promise<SharedMaps> {
  options.pins.prepare()
  options.pins.dropUnfinished()
  const held = new Held()
  try {
    const absent: Wanted[] = []
    for (const wanted of wantedMaps(options)) {
      const old = openPin(options.pins.map(wanted.name), wanted.name)
      const reason = old === undefined ? undefined : difference(old, wanted)
      if (old === undefined || reason !== undefined) absent.push(wanted)
      if (old !== undefined) held.found(wanted.name, { map: old, reason })
    }
    for (const { name } of wantedMaps(options)) openLeft(name, { held, pins: options.pins })
    const made = await createMaps(absent)
    for (const [name, map] of made) held.maps.set(name, map)
    for (const [name, map] of made) await place(name, { map, held, ...options })
    for (const { name, map: from } of held.left) {
      const to = held.maps.get(name)
      if (to !== undefined) await carryOver(name, { ...options, from, to, held, copy: 'copyMissing' })
    }
    const [table, recent] = [held.maps.get('np_ct'), held.maps.get('np_recent')]
    if (table !== undefined && recent !== undefined && !held.adopted.includes('np_ct')) await fillRecent(recent, table)
    return held
  } catch (thrown) {
    held.undo()
    held[Symbol.dispose]()
    throw thrown
  }
}

/** Handles on maps in use, and on replaced ones until they are finished. */
class Held implements SharedMaps {
  readonly maps = new Map<MapName, BpfMap>()
  readonly adopted: MapName[] = []
  readonly created: MapName[] = []
  readonly replaced: Replacement[] = []
  readonly old = new Map<MapName, { readonly map: BpfMap; readonly reason: string }>()
  readonly carriers: Carrier[] = []
  /** maps that an earlier agent replaced, and did not finish with before it ended */
  readonly left: { readonly name: MapName; readonly map: BpfMap }[] = []
  /** of maps to carry over from, of this call and before */
  readonly oldPins: string[] = []
  /** of this call */
  readonly moved: { readonly from: string; readonly to: string }[] = []

  found(name: MapName, found: { readonly map: BpfMap; readonly reason: string | undefined }): void {
    if (found.reason === undefined) {
      this.maps.set(name, found.map)
      this.adopted.push(name)
    } else this.old.set(name, { map: found.map, reason: found.reason })
  }

  async finish(): Promise<number> {
    let copied = 0
    for (const carrier of this.carriers.splice(0)) copied += await carrier.copyMissing()
    for (const pin of this.oldPins.splice(0)) removePins(pin)
    this.#closeOld()
    return copied
  }

  undo(): void {
    for (const { from, to } of this.moved.splice(0)) {
      try {
        movePin(to, from)
      } catch {
        // another process has removed pins: the next call makes the best of what is there
      }
    }
  }

  [Symbol.dispose](): void {
    for (const map of this.maps.values()) map.close()
    this.#closeOld()
  }

  #closeOld(): void {
    for (const { map } of [...this.old.values(), ...this.left.splice(0)]) map.close()
    this.old.clear()
  }
}

/** Each map once, from the first object that has it, with the size that is asked for. */
function wantedMaps(options: PinnedOptions): Wanted[] {
  const wanted = new Map<MapName, Wanted>()
  for (const object of options.objects) {
    for (const [name, spec] of object.shared) {
      const { sizedBy } = catalogue[name]
      const asked = sizedBy === 'object' ? spec.maxEntries : options.sizes[sizedBy]
      const maxEntries = spec.type === LRU_HASH ? lruRoom(asked, possibleCpus()) : asked
      if (!wanted.has(name)) wanted.set(name, { name, object, spec: { ...spec, maxEntries } })
    }
  }
  return [...wanted.values()]
}

/** Half is in common when each CPU has taken its rows; else CPUs take them from each other, and a few of one CPU go
 * before their time. */
export function lruRoom(asked: number, cpus: number): number {
  return Math.max(asked, 2 * LRU_TAKEN * cpus)
}

/** undefined when nothing is pinned there. */
export function openPin(path: string, map: string): BpfMap | undefined {
  try {
    return BpfMap.openPin(path)
  } catch (cause) {
    if (errorCode(cause) === 'ENOENT') return undefined
    throw new MapError({ map, op: 'open pin', reason: `${path}: ${errorText(cause)}`, cause })
  }
}

/** Entries that the pinned flow table has room for; undefined when there is none. */
export function pinnedRoom(pins: Pins): number | undefined {
  const map = openPin(pins.map('np_ct'), 'np_ct')
  const room = map?.info().maxEntries
  map?.close()
  return room
}

/** What is not as wanted; undefined when all is. A map without BTF (a kernel that does not keep it) is judged by its
 * sizes alone. */
function difference(map: BpfMap, wanted: Wanted): string | undefined {
  const info = map.info()
  const numbers = [
    ['type', 'type'],
    ['flags', 'map_flags'],
    ['keySize', 'key_size'],
    ['valueSize', 'value_size'],
    ['maxEntries', 'max_entries'],
  ] as const
  for (const [field, word] of numbers) {
    if (info[field] !== wanted.spec[field]) return `${word} ${info[field]} instead of ${wanted.spec[field]}`
  }
  if (info.btfId === 0 || info.keyTypeId === 0) return undefined
  try {
    return layoutDifference(map, wanted) ?? (catalogue[wanted.name].perCpu ? slotDifference(map, wanted) : undefined)
  } catch (thrown) {
    return errorText(thrown) // an old layout that we cannot even read
  }
}

/** As many counters, but others. */
function slotDifference(map: BpfMap, wanted: Wanted): string | undefined {
  const before = counterSlots(typesOf(map).btf)
  const moved = [...counterSlots(wanted.object.btf)].find(([name, slot]) => before.get(name) !== slot)
  return moved === undefined ? undefined : `${moved[0]} in slot ${before.get(moved[0]) ?? 'none'} instead of ${moved[1]}`
}

function layoutDifference(map: BpfMap, wanted: Wanted): string | undefined {
  const old = typesOf(map)
  for (const part of ['keyTypeId', 'valueTypeId'] as const) {
    const [before, after] = [layoutSignature(layoutOf(old.btf, old[part])), layoutSignature(layoutOf(wanted.object.btf, wanted.spec[part]))]
    if (before !== after) return `layout ${before} instead of ${after}`
  }
  return undefined
}

/** Through libbpf, so that the maps carry their BTF: each object is opened once more, with no program and no other
 * map. */
async function createMaps(absent: readonly Wanted[]): Promise<Map<MapName, BpfMap>> {
  const made = new Map<MapName, BpfMap>()
  try {
    for (const source of new Set(absent.map(({ object }) => object))) {
      const wanted = absent.filter(({ object }) => object === source)
      const object = BpfObject.open(source.path)
      try {
        for (const { name } of object.programs()) object.setAutoload(name, false)
        for (const { name } of object.maps()) if (!wanted.some((one) => one.name === name)) object.skipMap(name)
        // libbpf fills the slots of a program array even when it is skipped, with programs that are not loaded
        for (const { name, type } of object.maps()) if (type === PROG_ARRAY) object.setMapType(name, ARRAY)
        for (const { name, spec } of wanted) object.setMaxEntries(name, spec.maxEntries)
        await object.load()
        for (const { name } of wanted) made.set(name, object.map(name))
      } finally {
        object.close()
      }
    }
    return made
  } catch (cause) {
    for (const map of made.values()) map.close()
    throw new MapError({ map: absent.map(({ name }) => name).join(', '), op: 'create', cause })
  }
}

/** Fills the new map from the old one, then lets its pin take the old one's place. */
async function place(name: MapName, how: { readonly map: BpfMap; readonly held: Held } & PinnedOptions): Promise<void> {
  const { map, held, pins } = how
  try {
    map.pin(pins.newMap(name))
    const old = held.old.get(name)
    if (old === undefined) held.created.push(name)
    else {
      const carried = await carryOver(name, { ...how, from: old.map, to: map, copy: 'copyAll' })
      held.replaced.push({ map: name, reason: old.reason, ...carried })
      keepOld(name, { map: old.map, held, pins })
    }
    movePin(pins.newMap(name), pins.map(name))
  } catch (cause) {
    removePins(pins.newMap(name))
    throw cause instanceof MapError ? cause : new MapError({ map: name, op: 'replace', cause })
  }
}

/** Old programs write to it until they are replaced: after a kill, the next agent must find what they wrote. */
function keepOld(name: MapName, where: { readonly map: BpfMap; readonly held: Held; readonly pins: Pins }): void {
  if (catalogue[name].onChange === 'rewrite') return
  const pin = where.pins.oldMap(name, where.map.info().id)
  where.map.pin(pin)
  where.held.oldPins.push(pin)
  where.held.moved.push({ from: where.pins.map(name), to: pin })
}

/** Old maps that are pinned still. One that nothing has taken the place of yet is none: its agent ended in between. */
function openLeft(name: MapName, where: { readonly held: Held; readonly pins: Pins }): void {
  const { held, pins } = where
  const pinned = held.maps.get(name) ?? held.old.get(name)?.map
  for (const pin of pins.oldMaps(name)) {
    const map = openPin(pin, name)
    if (map === undefined) continue
    if (map.info().id === pinned?.info().id) {
      map.close()
      removePins(pin)
      continue
    }
    held.left.push({ name, map })
    held.oldPins.push(pin)
  }
}

interface CarryOptions extends Pick<PinnedOptions, 'timeouts'> {
  readonly from: BpfMap
  readonly to: BpfMap
  readonly held: Held
  readonly copy: keyof Carrier
}

async function carryOver(name: MapName, how: CarryOptions): Promise<Pick<Replacement, 'copied' | 'lost'>> {
  if (catalogue[name].onChange === 'rewrite') return { copied: 0, lost: undefined }
  try {
    const carrier = carrierOf(name, how)
    how.held.carriers.push(carrier)
    return { copied: await carrier[how.copy](), lost: undefined }
  } catch (thrown) {
    // an unreadable old layout must not keep the node down: its flows are lost, and the loss is reported
    if (errorCode(thrown) !== 'LAYOUT' && errorCode(thrown) !== 'PARSE') throw thrown
    return { copied: 0, lost: errorText(thrown) }
  }
}
