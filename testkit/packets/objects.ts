// SPDX-License-Identifier: Apache-2.0
/** Loads the built objects without an agent: knobs by name, maps shared, codecs bound. Layer: testkit. */
import { fileURLToPath } from 'node:url'
import { BpfObject } from '#native'
import type { BpfMap, BpfProgram } from '#native'
import type { Btf } from '#agent/maps/btf.ts'
import { findType, parseBtf, typeById } from '#agent/maps/btf.ts'
import type { MapCodecs, MapDefinition } from '#agent/maps/catalogue.ts'
import { bindMap } from '#agent/maps/catalogue.ts'
import { bind } from '#agent/maps/codec.ts'
import { layoutOf } from '#agent/maps/layout.ts'
import { decodeBytes, encodeBytes } from '#agent/maps/byte-rows.ts'
import { EVENT_BYTES } from '#agent/dataplane/programs/generation.ts'
import { RING_BUFFER } from '#agent/dataplane/programs/kernel-features.ts'
import { EVENTS, objectFileName } from '#agent/dataplane/programs/objects.ts'
import type { Features } from '#agent/dataplane/programs/kernel-features.ts'
import type { NodeCfg } from '#agent/maps/shapes.ts'
import { nodeCfg } from '#agent/maps/shapes.ts'

export type ObjectName = 'tc' | 'connect' | 'xdp'

/** Where the built objects are: beside the sources, or in NETPLANE_OBJECTS, for a bundle. */
export function objectPath(name: ObjectName, features: Pick<Features, 'global_functions'> = { global_functions: 'yes' }): string {
  const given = process.env['NETPLANE_OBJECTS']
  const file = objectFileName(name, features)
  return given === undefined ? fileURLToPath(new URL(`../../bpf/${file}`, import.meta.url)) : `${given}/${file}`
}

export interface Loaded {
  readonly object: BpfObject
  readonly btf: Btf
  /** with `statistics`, by program */
  readonly told?: Readonly<Record<string, string>>
}

export interface LoadOptions {
  readonly cfg?: NodeCfg
  /** maps of earlier objects to share, by name */
  readonly share?: ReadonlyMap<string, BpfMap>
  readonly stubHelpers?: readonly number[]
  /** names of programs to leave out, because the kernel has no such hook */
  readonly without?: readonly string[]
  /** what kernels before 5.6 are given; default: as `cfg.jiffies` says */
  readonly floor?: boolean
  /** ask what the verifier says of its work; a refusal has no log then */
  readonly statistics?: boolean
  /** entries of np_ct: small, so that tests load quickly */
  readonly conntrack?: number
}

export async function loadObject(name: ObjectName, options: LoadOptions = {}): Promise<Loaded> {
  const { floor = options.cfg?.jiffies === 0 } = options
  const object = BpfObject.open(objectPath(name, { global_functions: floor ? 'no' : 'yes' }))
  const btf = parseBtf(object.btf())
  if (options.cfg !== undefined) object.setRodata(withCfg(object.rodata(), { btf, cfg: options.cfg }))
  for (const map of object.maps()) {
    const shared = options.share?.get(map.name)
    if (shared !== undefined) object.reuseMap(map.name, shared)
    else if (map.name === 'np_ct') object.setMaxEntries('np_ct', options.conntrack ?? 4096)
    else if (map.name === EVENTS && options.cfg?.ring_buffer === 1) {
      object.setMapType(EVENTS, RING_BUFFER)
      object.setMaxEntries(EVENTS, EVENT_BYTES)
    }
  }
  for (const program of options.without ?? []) object.setAutoload(program, false)
  if (options.stubHelpers !== undefined && options.stubHelpers.length > 0) object.stubHelpers(options.stubHelpers)
  if (options.statistics === true) return { object, btf, told: await object.loadWithStatistics() }
  await object.load().catch((thrown: unknown) => {
    throw withVerifierLog(thrown)
  })
  return { object, btf }
}

const LAST_LINES = 25

/** The same error; its message ends with the end of the verifier's log, for of a failed test no more is shown. */
function withVerifierLog(thrown: unknown): unknown {
  if (thrown instanceof Error && 'verifierLog' in thrown && typeof thrown.verifierLog === 'string')
    thrown.message += `\n${thrown.verifierLog.trimEnd().split('\n').slice(-LAST_LINES).join('\n')}`
  return thrown
}

/** The maps of a loaded object, to be shared with the next. Tail-call arrays and read-only data stay its own. */
export function sharedMaps(object: BpfObject): Map<string, BpfMap> {
  const names = object.maps().map((map) => map.name)
  return new Map(names.filter((name) => name.startsWith('np_') && !name.startsWith('np_tail')).map((name) => [name, object.map(name)]))
}

/** A typed view of one map, for tests: values in, values out. */
export class TestMap<K, V> {
  readonly map: BpfMap
  readonly codecs: MapCodecs<K, V>

  constructor(loaded: Loaded, definition: MapDefinition<K, V>) {
    const spec = loaded.object.maps().find((map) => map.name === definition.name)
    if (spec === undefined) throw new Error(`the object has no map ${definition.name}`)
    this.codecs = bindMap(definition, loaded.btf, spec)
    this.map = loaded.object.map(definition.name)
  }

  set(key: K, value: V): void {
    this.map.update(encodeBytes(this.codecs.key, key), encodeBytes(this.codecs.value, value))
  }

  get(key: K): V | undefined {
    const bytes = this.map.lookup(encodeBytes(this.codecs.key, key))
    return bytes === undefined ? undefined : decodeBytes(this.codecs.value, bytes)
  }

  delete(key: K): boolean {
    return this.map.delete(encodeBytes(this.codecs.key, key))
  }

  async entries(): Promise<[K, V][]> {
    const { keys, values, count } = await this.map.dump()
    const { key, value } = this.codecs
    return Array.from({ length: count }, (_, at) => [
      decodeBytes(key, keys.subarray(at * key.size, (at + 1) * key.size)),
      decodeBytes(value, values.subarray(at * value.size, (at + 1) * value.size)),
    ])
  }

  /** The same at once, of a map with few entries while nothing changes it. */
  now(): [K, V][] {
    return this.#keys().flatMap((bytes) => {
      const key = decodeBytes(this.codecs.key, bytes)
      const value = this.get(key)
      return value === undefined ? [] : [[key, value]]
    })
  }

  async clear(): Promise<void> {
    const { keys, count } = await this.map.dump()
    this.map.deleteBatch(keys, count)
  }

  /** The same at once, of a map with few entries. */
  empty(): void {
    for (const key of this.#keys()) this.map.delete(key)
  }

  #keys(): Buffer[] {
    const keys: Buffer[] = []
    for (let key = this.map.nextKey(undefined); key !== undefined; key = this.map.nextKey(key)) keys.push(key)
    return keys
  }
}

export function program(loaded: Loaded, name: string): BpfProgram {
  return loaded.object.program(name)
}

function withCfg(rodata: Buffer, options: { readonly btf: Btf; readonly cfg: NodeCfg }): Buffer {
  const { btf, cfg } = options
  const section = findType(btf, 'section', '.rodata')
  const variable = section?.variables.find((candidate) => typeById(btf, candidate.type).name === 'cfg')
  if (variable === undefined) throw new Error('the object has no variable cfg in .rodata')
  const type = typeById(btf, variable.type)
  if (type.kind !== 'variable') throw new Error('cfg is no variable')
  const codec = bind(nodeCfg, layoutOf(btf, type.type))
  const bytes = Buffer.from(rodata)
  codec.encode(cfg, new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), variable.offset)
  return bytes
}
