// SPDX-License-Identifier: Apache-2.0
/** Generations of programs in memory: real tables over fake maps, with the types of the built objects. Nothing looks
 * into a program. Layer: test. */
import type { MapSpec } from '#native'
import { deepEqual } from '#lib/base/deep-equal.ts'
import type { Clock } from '#lib/base/clock.ts'
import type { Configuration } from '#agent/compile/desired.ts'
import { CGROUP_HOOKS } from '#agent/dataplane/attach/cgroup.ts'
import type { LoadedProgram } from '#agent/dataplane/attach/hook.ts'
import { tablesOf, type GenerationTables } from '#agent/dataplane/generation-tables.ts'
import type { Generations } from '#agent/dataplane/loader.ts'
import { OBJECTS } from '#agent/dataplane/programs/objects.ts'
import type { SharedMaps } from '#agent/dataplane/programs/shared-maps.ts'
import type { Interfaces } from '#agent/interfaces/table.ts'
import type { Btf } from '#agent/maps/btf.ts'
import { decodeText } from '#agent/maps/byte-rows.ts'
import { bindMap, catalogue, type MapCodecs, type MapDefinition, type MapName } from '#agent/maps/catalogue.ts'
import { builtObject, declaredMaps } from '../compiled.ts'
import { FakeMap } from './fake-map.ts'

interface ObjectTypes {
  readonly btf: Btf
  readonly shared: ReadonlyMap<MapName, MapSpec>
}

class FakePinnedMap extends FakeMap {
  isPinned = true

  pin(): void {
    this.isPinned = true
  }

  updateFd(): never {
    throw new Error('has no programs')
  }
}

const HASH = 1
const objects = OBJECTS.map((name) => typesIn(builtObject(name).btf))
const PROGRAMS = [
  ...['tc.from_workload', 'tc.to_workload', 'tc.from_host', 'tc.to_host', 'tc.drop_tunnel', 'xdp.untracked'],
  ...CGROUP_HOOKS.map((hook) => `connect.${hook}`),
]

/** As `Generations` of a kernel whose verifier takes everything but while there is a `refusal`. */
export class FakeGenerations implements Generations {
  /** by id, its pins */
  readonly pinned = new Map<string, number>()
  /** of the kernel, by name */
  readonly maps = new Map<MapName, FakePinnedMap>()
  /** what was loaded, or refused, one after the other */
  readonly attempts: Configuration[] = []
  /** loaded, and not disposed of */
  handles = 0
  /** there is a file system for pins */
  isMounted = true
  /** what loading throws */
  refusal: Error | undefined
  /** loading goes on once this has resolved */
  verified: Promise<void> = Promise.resolve()
  readonly #of: { readonly interfaces: Interfaces; readonly clock: Clock }
  readonly #ids: Configuration[] = []
  #programs = 0

  constructor(of: { readonly interfaces: Interfaces; readonly clock: Clock }) {
    this.#of = of
  }

  async load(configuration: Configuration, onVerifying?: () => void): Promise<GenerationTables> {
    this.attempts.push(configuration)
    onVerifying?.()
    await this.verified
    if (this.refusal !== undefined) throw this.refusal
    if (!this.#ids.some((one) => deepEqual(one, configuration))) this.#ids.push(configuration)
    const id = `g${this.#ids.findIndex((one) => deepEqual(one, configuration))}`
    const adopted = this.pinned.has(id)
    this.pinned.set(id, PROGRAMS.length)
    const programs = new Map(PROGRAMS.map((name) => [name, programOf(++this.#programs)]))
    this.handles++
    const generation = { id, adopted, programs, pinned: new Map<never, never>(), [Symbol.dispose]: () => this.handles-- }
    return tablesOf({ shared: this.#shared(configuration), generation, objects, ...this.#of })
  }

  list(): readonly string[] {
    return [...this.pinned.keys()]
  }

  dropOthers(keep: string): readonly string[] {
    const dropped = this.list().filter((id) => id !== keep)
    for (const id of dropped) this.pinned.delete(id)
    return dropped
  }

  repin({ generation: { id }, shared: { maps } }: GenerationTables): readonly string[] {
    if (!this.isMounted) throw new Error('there is no BPF file system')
    const lost = [...maps.keys()].filter((name) => this.maps.get(name)?.isPinned === false)
    for (const name of lost) this.maps.get(name)?.pin()
    const programs = this.pinned.get(id) === PROGRAMS.length ? [] : ['program tc-np_tail']
    this.pinned.set(id, PROGRAMS.length)
    return [...lost.map((name) => `map ${name}`), ...programs]
  }

  /** What a map of the kernel has. */
  rows<K, V>(definition: MapDefinition<K, V>): readonly (readonly [K, V])[] {
    const { key, value } = codecsOf(definition)
    const map = this.maps.values().find((one) => one.info().name === definition.name)
    return [...(map?.contents() ?? [])].map(([k, v]) => [decodeText(key, k), decodeText(value, v)])
  }

  flowTableSize(): number | undefined {
    return this.maps.get('np_ct')?.info().maxEntries
  }

  #shared({ mapSizes }: Configuration): SharedMaps {
    const created: MapName[] = []
    for (const { shared } of objects)
      for (const [name, spec] of shared) {
        const { sizedBy } = catalogue[name]
        const maxEntries = sizedBy === 'object' ? spec.maxEntries : mapSizes[sizedBy]
        if (this.maps.get(name)?.info().maxEntries === maxEntries) continue
        this.maps.set(name, new FakePinnedMap({ ...spec, maxEntries }))
        created.push(name)
      }
    const adopted = [...this.maps.keys()].filter((name) => !created.includes(name))
    const none = { replaced: [], finish: () => Promise.resolve(0), undo: () => undefined, [Symbol.dispose]: () => undefined }
    return { maps: new Map(this.maps), adopted, created, ...none }
  }
}

function codecsOf<K, V>(definition: MapDefinition<K, V>): MapCodecs<K, V> {
  for (const { btf, shared } of objects)
    for (const spec of shared.values()) if (spec.name === definition.name) return bindMap(definition, btf, spec)
  throw new Error(`no object has the map ${definition.name}`)
}

function programOf(id: number): LoadedProgram {
  return {
    id,
    get handle(): never {
      throw new Error('there is no program')
    },
  }
}

function typesIn(btf: Btf): ObjectTypes {
  const shared = new Map<MapName, MapSpec>()
  for (const [name, types] of declaredMaps(btf)) {
    if (!isMapName(name)) continue
    const { key, value } = bindMap<unknown, unknown>(catalogue[name], btf, types)
    const sizes = { keySize: key.size, valueSize: value.size, maxEntries: types.maxEntries ?? 1 }
    shared.set(name, { name, type: HASH, flags: 0, ...sizes, keyTypeId: types.keyTypeId, valueTypeId: types.valueTypeId })
  }
  return { btf, shared }
}

function isMapName(name: string): name is MapName {
  return Object.hasOwn(catalogue, name)
}
