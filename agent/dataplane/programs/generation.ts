// SPDX-License-Identifier: Apache-2.0
/** Our programs, one pinned generation for each combination of objects, knobs and maps: adopted when it is there,
 * else loaded beside the old one. Layer: agent/dataplane. */
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { BpfMap, BpfProgram } from '#native'
import type { MapName } from '../../maps/catalogue.ts'
import type { NodeCfg } from '../../maps/shapes.ts'
import type { Features } from './kernel-features.ts'
import { missingHelpers, missingHooks, RING_BUFFER } from './kernel-features.ts'
import type { LoadedProgram } from '../attach/hook.ts'
import { EVENTS, programError, setKnobs, type OpenObject } from './objects.ts'
import type { Pins } from '../pins.ts'
import { makePinFolder, movePin, removePins } from '../pins.ts'

export interface GenerationOptions {
  readonly pins: Pins
  /** Used up: an opened object can be loaded once. The caller still closes them. */
  readonly objects: readonly OpenObject[]
  readonly knobs: NodeCfg
  readonly features: Features
  readonly maps: ReadonlyMap<MapName, BpfMap>
  /** the kernel has been given the first of them */
  readonly onVerifying?: (() => void) | undefined
}

/** The caller closes it; the pins keep the programs and their tail-call arrays. Until it is closed these stay filled
 * also when another program removes a pin: an array empties with the last reference of a process or a pin. */
export interface Generation extends Disposable {
  readonly id: string
  /** it was there already: nothing was loaded */
  readonly adopted: boolean
  /** by "tc.from_workload"; those for hooks that the kernel does not have are left out */
  readonly programs: ReadonlyMap<string, LoadedProgram>
  /** what its pins keep, by their names in its folder */
  readonly pinned: ReadonlyMap<string, BpfProgram | BpfMap>
}

/** What goes into one generation: names of pins, by object. */
interface Plan {
  readonly opened: OpenObject
  readonly programs: readonly string[]
}

/** What a generation is made of, while it is made. */
interface Parts {
  readonly programs: Map<string, LoadedProgram>
  readonly pinned: Map<string, BpfProgram | BpfMap>
}

/** Of the four threads that Node has for such work one is left to others: a load takes a while. */
const AT_ONCE = 3

/** for 8,000 events, each 120 bytes with its header */
export const EVENT_BYTES = 1024 * 1024

/** Leaves other generations alone. Throws ProgramError, with the verifier's log when it was the verifier. */
export async function ensureGeneration(options: GenerationOptions): Promise<Generation> {
  const plans = options.objects.map((opened) => planOf(opened, options.features))
  const hash = fingerprint(plans, options)
  for (let attempt = 0; ; attempt++) {
    const id = attempt === 0 ? hash : `${hash}-${attempt}`
    if (!existsSync(options.pins.generation(id))) return await load(id, plans, options)
    const found = open(id, plans, options.pins)
    // one that lacks a pin may still be at work, so it keeps what it has until it is dropped as a whole
    if (found !== undefined) return found
  }
}

/** Removes the pins of all other generations. Only once no hook runs them: a tail-call array empties with its last
 * pin. */
export function dropGenerations(pins: Pins, keep: string): string[] {
  const dropped = pins.generations().filter((id) => id !== keep)
  for (const id of dropped) removePins(pins.generation(id))
  return dropped
}

function planOf(opened: OpenObject, features: Features): Plan {
  const missing = missingHooks(features)
  return {
    opened,
    programs: opened.object
      .programs()
      .map(({ name }) => name)
      .filter((name) => !missing.has(name)),
  }
}

/** Sets the knobs on the way, for they are part of what is hashed. Map ids make it the generation of these very
 * maps: ids are not given twice. */
function fingerprint(plans: readonly Plan[], options: GenerationOptions): string {
  const hash = createHash('sha256')
  for (const { opened, programs } of plans) {
    hash.update(JSON.stringify([opened.name, opened.digest, programs]))
    hash.update(setKnobs(opened, options.knobs))
  }
  hash.update(JSON.stringify([missingHelpers(options.features), [...options.maps].map(([name, map]) => [name, map.info().id]).sort()]))
  return hash.digest('hex').slice(0, 16)
}

/** undefined when a pin is missing or is something else. */
function open(id: string, plans: readonly Plan[], pins: Pins): Generation | undefined {
  const parts: Parts = { programs: new Map(), pinned: new Map() }
  const generation = generationOf(id, true, parts)
  try {
    for (const { opened, programs: names } of plans) {
      for (const name of names) {
        const handle = BpfProgram.openPin(join(pins.generation(id), pinName(opened, name)))
        parts.pinned.set(pinName(opened, name), handle)
        const info = handle.info()
        parts.programs.set(`${opened.name}.${name}`, { id: info.id, handle })
        if (!isNamed(info.name, name)) throw new Error(`pin of ${name} is program ${info.name}`)
      }
      for (const name of opened.own)
        parts.pinned.set(pinName(opened, name), BpfMap.openPin(join(pins.generation(id), pinName(opened, name))))
    }
    return generation
  } catch {
    generation[Symbol.dispose]()
    return undefined
  }
}

async function load(id: string, plans: readonly Plan[], options: GenerationOptions): Promise<Generation> {
  const parts: Parts = { programs: new Map(), pinned: new Map() }
  const generation = generationOf(id, false, parts)
  const folder = options.pins.newGeneration(id)
  try {
    removePins(folder)
    makePinFolder(folder)
    const queue = [...plans]
    const loadAll = async (): Promise<void> => {
      for (let plan = queue.shift(); plan !== undefined; plan = queue.shift()) await loadObject(plan, { folder, parts, options })
    }
    const works = Array.from({ length: AT_ONCE }, loadAll)
    options.onVerifying?.()
    await allOf(works)
    movePin(folder, options.pins.generation(id))
    return generation
  } catch (thrown) {
    generation[Symbol.dispose]()
    removePins(folder)
    throw thrown
  }
}

/** Side by side: what the verifier takes is most of an agent's start. Whatever fails, nothing goes on behind our
 * back. */
async function allOf(works: readonly Promise<void>[]): Promise<void> {
  const failed = (await Promise.allSettled(works)).find((outcome) => outcome.status === 'rejected')
  if (failed !== undefined) throw failed.reason
}

async function loadObject(
  plan: Plan,
  into: { readonly folder: string; readonly parts: Parts; readonly options: GenerationOptions },
): Promise<void> {
  const { opened } = plan
  const { maps, features } = into.options
  try {
    for (const { name } of opened.object.programs()) if (!plan.programs.includes(name)) opened.object.setAutoload(name, false)
    for (const name of opened.shared.keys()) {
      const map = maps.get(name)
      if (map !== undefined) opened.object.reuseMap(name, map)
    }
    if (opened.own.includes(EVENTS) && features.ring_buffer === 'yes') {
      opened.object.setMapType(EVENTS, RING_BUFFER)
      opened.object.setMaxEntries(EVENTS, EVENT_BYTES)
    }
    const missing = missingHelpers(features)
    if (missing.length > 0) opened.object.stubHelpers(missing)
    await opened.object.load()
    for (const name of opened.own) pinIn(into, pinName(opened, name), opened.object.map(name))
    for (const name of plan.programs) {
      const handle = opened.object.program(name)
      pinIn(into, pinName(opened, name), handle)
      into.parts.programs.set(`${opened.name}.${name}`, { id: handle.info().id, handle })
    }
  } catch (cause) {
    throw programError(opened.name, 'load', cause)
  }
}

/** Its handle is the generation's from here on, which is closed when this fails. */
function pinIn({ folder, parts }: { readonly folder: string; readonly parts: Parts }, name: string, handle: BpfProgram | BpfMap): void {
  parts.pinned.set(name, handle)
  handle.pin(join(folder, name))
}

/** bpffs refuses dots in names. */
function pinName(opened: OpenObject, name: string): string {
  return `${opened.name}-${name}`
}

/** The kernel keeps the first 15 characters. */
function isNamed(actual: string, name: string): boolean {
  return actual === name.slice(0, 15)
}

function generationOf(id: string, adopted: boolean, parts: Parts): Generation {
  const { programs, pinned } = parts
  return {
    id,
    adopted,
    programs,
    pinned,
    [Symbol.dispose]() {
      for (const handle of pinned.values()) handle.close()
      pinned.clear()
      programs.clear()
    },
  }
}
