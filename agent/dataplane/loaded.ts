// SPDX-License-Identifier: Apache-2.0
/** Programs, maps and tables of one configuration, brought into the kernel or found there. Layer: agent/dataplane. */
import { join } from 'node:path'
import type { BpfMap } from '#native'
import type { DesiredNode } from '#agent/compile/desired.ts'
import type { Interfaces } from '#agent/interfaces/table.ts'
import { bindMap, catalogue, type MapCodecs, type MapDefinition, type MapName } from '#agent/maps/catalogue.ts'
import { entryWriter } from '#agent/maps/text.ts'
import { InternalError } from '#lib/base/errors.ts'
import type { Device } from './devices.ts'
import type { Features } from './features.ts'
import { nodeConfig } from './knobs.ts'
import { counterSlots } from './migrate.ts'
import { openObject, type OpenObject } from './objects.ts'
import { ensureMaps, type SharedMaps } from './pinned.ts'
import type { Pins } from './pins.ts'
import { ensureGeneration, type Generation } from './programs.ts'
import { RowTables } from './row-tables.ts'
import { ifaceRows, SELF_OWNER, selfFragment } from './self.ts'
import { Table } from './table.ts'

export interface LoadOptions {
  readonly pins: Pins
  /** folder of the BPF objects */
  readonly objects: string
  readonly features: Features
  readonly interfaces: Interfaces
}

/** What decides which programs and maps there are. */
export type Configuration = Pick<DesiredNode, 'knobs' | 'mapSizes' | 'connectTime'>

export const TABLES = ['addrs', 'ifaces', 'backends', 'frontends'] as const
export type TableName = (typeof TABLES)[number]

/** Handles only: what is in the kernel stays there when it is disposed of. */
export interface Loaded extends Disposable {
  readonly generation: Generation
  readonly shared: SharedMaps
  readonly rows: RowTables
  readonly tables: Readonly<Record<TableName, Table>>
  /** "DROP_TTL", "COUNT_CONNECT" → slot of np_counters */
  readonly counters: ReadonlyMap<string, number>
  /** rows of these devices and of the node's own addresses */
  setDevices(devices: readonly Device[]): void
}

/** Throws ProgramError, MapError, LayoutError or UnsupportedError; then hooks and tables are as they were. */
export async function load(configuration: Configuration, options: LoadOptions): Promise<Loaded> {
  const names = configuration.connectTime ? ['workload', 'host', 'connect'] : ['workload', 'host']
  const objects: OpenObject[] = []
  try {
    for (const name of names) objects.push(openObject({ name, path: join(options.objects, `${name}.bpf.o`) }))
    const shared = await ensureMaps({ pins: options.pins, objects, sizes: configuration.mapSizes })
    try {
      const knobs = nodeConfig(configuration.knobs, options.features)
      const generation = await ensureGeneration({ pins: options.pins, objects, knobs, features: options.features, maps: shared.maps })
      return assemble({ shared, generation, objects, interfaces: options.interfaces })
    } catch (thrown) {
      shared[Symbol.dispose]()
      throw thrown
    }
  } finally {
    for (const { object } of objects) object.close()
  }
}

interface Parts {
  readonly shared: SharedMaps
  readonly generation: Generation
  readonly objects: readonly OpenObject[]
  readonly interfaces: Interfaces
}

function assemble({ shared, generation, objects, interfaces }: Parts): Loaded {
  const table = (name: MapName): Table => new Table(mapOf(shared, name))
  const tables = { addrs: table('np_addrs'), ifaces: table('np_ifaces'), backends: table('np_backends'), frontends: table('np_frontends') }
  const codecs = {
    frontends: codecsOf(catalogue.np_frontends, 'np_frontends', objects),
    backends: codecsOf(catalogue.np_backends, 'np_backends', objects),
    addrs: codecsOf(catalogue.np_addrs, 'np_addrs', objects),
  }
  const rows = new RowTables({ tables, codecs, resolve: (name) => interfaces.byName(name)?.index })
  const ifaceEntry = entryWriter(codecsOf(catalogue.np_ifaces, 'np_ifaces', objects))
  const counted = objects.find((one) => one.shared.has('np_counters'))
  return {
    generation,
    shared,
    rows,
    tables,
    counters: counted === undefined ? new Map() : counterSlots(counted.btf),
    setDevices: (devices) => {
      tables.ifaces.setFragment(SELF_OWNER, ifaceRows(devices).map(ifaceEntry))
      rows.setFragment(selfFragment(interfaces))
    },
    [Symbol.dispose]() {
      generation[Symbol.dispose]()
      shared[Symbol.dispose]()
    },
  }
}

function mapOf(shared: SharedMaps, name: MapName): BpfMap {
  const map = shared.maps.get(name)
  if (map === undefined) throw new InternalError(`no object has the map ${name}`)
  return map
}

function codecsOf<K, V>(definition: MapDefinition<K, V>, name: MapName, objects: readonly OpenObject[]): MapCodecs<K, V> {
  for (const { btf, shared } of objects) {
    const spec = shared.get(name)
    if (spec !== undefined) return bindMap(definition, btf, spec)
  }
  throw new InternalError(`no object has the map ${name}`)
}
