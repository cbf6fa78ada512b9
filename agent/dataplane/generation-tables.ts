// SPDX-License-Identifier: Apache-2.0
/** Programs, maps and tables of one configuration, brought into the kernel or found there. Layer: agent/dataplane. */
import { join } from 'node:path'
import type { BpfMap } from '#native'
import type { Configuration } from '#agent/compile/desired.ts'
import type { Interfaces } from '#agent/interfaces/table.ts'
import type { Btf } from '#agent/maps/btf.ts'
import { bindMap, catalogue, type MapCodecs, type MapDefinition, type MapName } from '#agent/maps/catalogue.ts'
import { counterSlots } from '#agent/maps/counters.ts'
import { entryWriter } from '#agent/maps/byte-rows.ts'
import type { Clock } from '#lib/base/clock.ts'
import { InternalError } from '#lib/base/errors.ts'
import type { Cidr } from '#lib/base/ip.ts'
import { recordOf } from '#lib/base/object.ts'
import { selfPrefixes, type Device } from './host/devices.ts'
import type { HookPrograms, WantedProgram } from './attach/attachments.ts'
import { KeyOwners } from './maps/key-owners.ts'
import type { Features } from './programs/kernel-features.ts'
import type { LoadedProgram, Place } from './attach/hook.ts'
import { xdpPlace } from './attach/xdp.ts'
import { writeGateFor, type WriteGate } from './maps/write-order.ts'
import { nodeConfig } from './programs/node-config.ts'
import { objectFileName, OBJECTS, openObject, type OpenObject } from './programs/objects.ts'
import { ensureMaps, type SharedMaps } from './programs/shared-maps.ts'
import type { Pins } from './pins.ts'
import { addressReadiness, type AddressReadiness } from './pod-readiness.ts'
import { AddrMerger } from './policy/addr-merger.ts'
import { policyHolds, policyDataplane, POLICY_TABLES, type PolicyDataplane } from './policy/policy-dataplane.ts'
import { ensureGeneration, type Generation } from './programs/generation.ts'
import { RowTables, type FragmentSink } from './maps/row-tables.ts'
import { ROW_TABLES, rowWriters, type BindMap } from './maps/encode-rows.ts'
import { addressClaims, vethsIn, ifaceRows, SELF_OWNER, selfFragment } from './host/node-rows.ts'
import { tableMap } from './maps/array-map.ts'
import { MapTable } from './maps/map-table.ts'
import { setNodeState } from './maps/node-state.ts'

export interface LoadOptions {
  readonly pins: Pins
  /** folder of the BPF objects */
  readonly objects: string
  readonly features: Features
  readonly interfaces: Interfaces
  readonly clock: Clock
}

/** By the map's name, what its keys and values are. */
type MapTypes = Pick<OpenObject, 'btf' | 'shared'>

/** Maps that we fill, np_<name> each: what is referred to before what refers to it. */
export const TABLES = ['ifaces', ...POLICY_TABLES, ...ROW_TABLES] as const
export type TableName = (typeof TABLES)[number]

/** Handles only: what is in the kernel stays there when it is disposed of. */
export interface GenerationTables extends Disposable {
  readonly generation: Generation
  readonly shared: SharedMaps
  readonly rows: RowTables
  readonly tables: Readonly<Record<TableName, MapTable>>
  readonly policy: PolicyDataplane
  /** how far the rows of a pod's address are */
  readonly address: AddressReadiness
  /** rows that have to wait for others */
  readonly holds: WriteGate
  /** Has packets enter the tunnel by the device of this index, with a checksum; 0: by none. Throws the kernel's
   * error. */
  enterTunnelBy(index: number): void
  /** the objects' own types */
  readonly btf: Btf
  /** "DROP_TTL", "COUNT_CONNECT" → slot of np_counters */
  readonly counters: ReadonlyMap<string, number>
  /** indexes of interfaces that the kernel's programs know as pods'; undefined before these were read */
  veths(): ReadonlySet<number> | undefined
  /** rows of these devices and of the node's own addresses, with those where node ports are served; none: everywhere */
  setDevices(devices: readonly Device[], nodePorts: readonly Cidr[]): void
}

/** `onVerifying`: the kernel is at work on programs. Throws ProgramError, MapError, LayoutError or UnsupportedError;
 * then hooks and tables are as they were. */
export async function load(configuration: Configuration, options: LoadOptions, onVerifying?: () => void): Promise<GenerationTables> {
  const objects: OpenObject[] = []
  try {
    for (const name of OBJECTS) objects.push(openObject({ name, path: join(options.objects, objectFileName(name, options.features)) }))
    const shared = await ensureMaps({ pins: options.pins, objects, sizes: configuration.mapSizes, timeouts: configuration.knobs.timeouts })
    try {
      const knobs = nodeConfig(configuration, options.features)
      const { pins, features } = options
      const generation = await ensureGeneration({ pins, objects, knobs, features, maps: shared.maps, onVerifying })
      return tablesOf({ shared, generation, objects, interfaces: options.interfaces, clock: options.clock })
    } catch (thrown) {
      shared.undo()
      shared[Symbol.dispose]()
      throw thrown
    }
  } finally {
    for (const { object } of objects) object.close()
  }
}

export interface TablesOptions {
  readonly shared: SharedMaps
  readonly generation: Generation
  readonly objects: readonly MapTypes[]
  readonly interfaces: Interfaces
  readonly clock: Clock
}

/** What reads and writes the maps that are there. */
export function tablesOf({ shared, generation, objects, interfaces, clock }: TablesOptions): GenerationTables {
  const tables = recordOf(TABLES, (name) => new MapTable(tableMap(mapOf(shared, `np_${name}`))))
  const bind: BindMap = (definition) => codecsOf(definition, objects)
  const codecs = bind(catalogue.np_addrs)
  const join = new AddrMerger({ rows: tables.addrs.rows, value: codecs.value, actual: (key) => tables.addrs.actualAt(key) })
  const sinks = { ...tables, addrs: new KeyOwners(join, addressClaims(codecs.value)) }
  const rows = new RowTables<FragmentSink>({ tables: sinks, writers: rowWriters(bind), resolve: (name) => interfaces.byName(name)?.index })
  const ifaces = bind(catalogue.np_ifaces)
  const ifaceEntry = entryWriter(ifaces)
  const { btf } = objects.find((one) => one.shared.has('np_ct')) ?? missing('np_ct')
  const state = mapOf(shared, 'np_state')
  const policy = policyDataplane({ bind, tables, join, btf, state, now: () => clock.now() })
  return {
    generation,
    shared,
    rows,
    tables,
    policy,
    address: addressReadiness({ table: tables.addrs, join, codecs }),
    holds: policyHolds(policy, writeGateFor(bind, tables)),
    btf,
    enterTunnelBy: (tunnel_device) => {
      setNodeState(state, btf, { tunnel_device })
    },
    counters: counterSlots(btf),
    veths: () => {
      const rows = tables.ifaces.actual()
      return rows && vethsIn(rows, ifaces)
    },
    setDevices: (devices, nodePorts) => {
      tables.ifaces.setFragment(SELF_OWNER, ifaceRows(devices).map(ifaceEntry))
      rows.setFragment(selfFragment(interfaces, nodePorts))
      policy.epoch.setOwnPrefixes(selfPrefixes(interfaces).length)
      policy.hosts.setDevices(devices)
    },
    [Symbol.dispose]() {
      policy.epoch.apply()
      generation[Symbol.dispose]()
      shared[Symbol.dispose]()
    },
  }
}

function mapOf(shared: SharedMaps, name: MapName): BpfMap {
  return shared.maps.get(name) ?? missing(name)
}

function codecsOf<K, V>(definition: MapDefinition<K, V>, objects: readonly MapTypes[]): MapCodecs<K, V> {
  for (const { btf, shared } of objects) {
    const spec = [...shared.values()].find(({ name }) => name === definition.name)
    if (spec !== undefined) return bindMap(definition, btf, spec)
  }
  return missing(definition.name)
}

function missing(map: string): never {
  throw new InternalError(`no object has the map ${map}`)
}

function programNamed({ generation }: GenerationTables, name: string): LoadedProgram {
  const found = generation.programs.get(name)
  if (found === undefined) throw new InternalError(`there is no program ${name}`)
  return found
}

/** By the hooks of interfaces; `standby_`: those that stand by behind them. */
export function hookPrograms(loaded: GenerationTables, which: '' | 'standby_' = ''): HookPrograms {
  const program = (hook: keyof HookPrograms): LoadedProgram => programNamed(loaded, `tc.${which}${hook}`)
  return {
    from_workload: program('from_workload'),
    to_workload: program('to_workload'),
    from_host: program('from_host'),
    to_host: program('to_host'),
  }
}

/** Of the device that announces the tunnel's port. */
export function dropProgram(loaded: GenerationTables): LoadedProgram {
  return programNamed(loaded, 'tc.drop_tunnel')
}

/** The XDP program where there are rules for every packet. */
export function xdpPrograms({ generation, policy }: GenerationTables): readonly WantedProgram<Place>[] {
  const program = generation.programs.get('xdp.untracked')
  return program === undefined ? [] : policy.hosts.untracked.map((iface) => ({ place: xdpPlace(iface), program }))
}

/** By hook. Where connect-time balancing is off they serve the node's own addresses only. */
export function connectPrograms(loaded: GenerationTables): Map<string, LoadedProgram> {
  const prefix = 'connect.'
  return new Map(
    [...loaded.generation.programs]
      .filter(([name]) => name.startsWith(prefix))
      .map(([name, program]) => [name.slice(prefix.length), program]),
  )
}
