// SPDX-License-Identifier: Apache-2.0
/** The pinned maps, read with the layouts that they carry. Layer: cli. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { BpfMap, btfById } from '#native'
import { errorCode, errorText } from '#lib/base/errors.ts'
import { packageVersion } from '#lib/base/os/package.ts'
import { carriedTypes, type CarriedTypes } from '#agent/maps/map-btf.ts'
import { bindMap, catalogue, type MapDefinition } from '#agent/maps/catalogue.ts'
import { counterSlots, counterTotal, namedCounters } from '#agent/maps/counters.ts'
import { PinsError } from './errors.ts'
import { tableOf, writableTableOf, type CounterValue, type Table, type Tables, type WritableTable } from './map-tables.ts'

/** Holds maps open until it is disposed of. */
export class PinnedTables implements Tables, Disposable {
  readonly #folder: string
  readonly #maps: BpfMap[] = []

  /** The folder in which the agent pins. */
  constructor(folder: string) {
    this.#folder = join(folder, 'maps')
  }

  open<K, V>(definition: MapDefinition<K, V>): Table<K, V> {
    return this.#read(definition.name, (map, types) => tableOf(map, bindMap(definition, types.btf, types), types.btf))
  }

  /** Programs and agent write it as well. */
  openWritable<K, V>(definition: MapDefinition<K, V>): WritableTable<K, V> {
    return this.#read(definition.name, (map, types) => writableTableOf(map, bindMap(definition, types.btf, types), types.btf))
  }

  counters(): readonly CounterValue[] {
    return this.#read(catalogue.np_counters.name, (map, { btf }) =>
      namedCounters(counterSlots(btf)).map(({ kind, name, slot }) => ({ kind, name, value: counterTotal(map, slot) })),
    )
  }

  [Symbol.dispose](): void {
    for (const map of this.#maps.splice(0)) map.close()
  }

  #read<T>(name: string, read: (map: BpfMap, types: CarriedTypes) => T): T {
    try {
      const map = BpfMap.openPin(join(this.#folder, name))
      this.#maps.push(map)
      return read(map, carriedTypes(map.info(), btfById))
    } catch (thrown) {
      throw pinsError(thrown, { folder: this.#folder, name, anyPins: existsSync(this.#folder) })
    }
  }
}

/** In words for the user; any other error goes on as it is. */
export function pinsError(thrown: unknown, place: { readonly folder: string; readonly name: string; readonly anyPins: boolean }): unknown {
  const { folder, name, anyPins } = place
  switch (errorCode(thrown)) {
    case 'ENOENT':
      return anyPins
        ? new PinsError(`there is no map ${name} in ${folder}: the agent that pinned the others is of another version`, thrown)
        : new PinsError(
            `there is nothing in ${folder}: no agent has run on this node, or it was cleaned up (--pins: another folder)`,
            thrown,
          )
    case 'EACCES':
    case 'EPERM':
      return new PinsError('the maps of the data plane can only be read by root', thrown)
    case 'ENOTDIR':
    case 'EINVAL':
      return new PinsError(`${join(folder, name)} is no pinned map: ${errorText(thrown)}`, thrown)
    case 'LAYOUT':
    case 'PARSE':
      return new PinsError(
        `map ${name} was made by an agent of another version than netplanectl ${packageVersion()}: ${errorText(thrown)} (the object is the agent's, the shape is netplanectl's)`,
        thrown,
      )
    default:
      return thrown
  }
}
