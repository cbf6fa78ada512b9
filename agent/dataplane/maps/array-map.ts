// SPDX-License-Identifier: Apache-2.0
/** An array map as tables see maps: what is zero is not there. Layer: agent/dataplane. */
import type { MapInfo } from '#native'
import type { TableMap } from './map-table.ts'

/** BPF_MAP_TYPE_ARRAY */
const ARRAY = 2

export type AnyTableMap = Omit<TableMap, 'info'> & { info(): MapInfo }

export function tableMap(map: AnyTableMap): TableMap {
  return map.info().type === ARRAY ? new ArrayRows(map) : map
}

class ArrayRows implements TableMap {
  readonly #map: AnyTableMap

  constructor(map: AnyTableMap) {
    this.#map = map
  }

  get keyBytes(): number {
    return this.#map.keyBytes
  }

  get valueBytes(): number {
    return this.#map.valueBytes
  }

  info(): MapInfo {
    return this.#map.info()
  }

  updateBatch(keys: Uint8Array, values: Uint8Array, count: number): number {
    return this.#map.updateBatch(keys, values, count)
  }

  deleteBatch(keys: Uint8Array, count: number): number {
    return this.#map.updateBatch(keys, new Uint8Array(count * this.valueBytes), count)
  }

  async dump(): ReturnType<TableMap['dump']> {
    const { keys, values, count } = await this.#map.dump()
    const { keyBytes, valueBytes } = this
    let kept = 0
    for (let at = 0; at < count; at++) {
      const value = values.subarray(at * valueBytes, (at + 1) * valueBytes)
      if (value.every((byte) => byte === 0)) continue
      values.copyWithin(kept * valueBytes, at * valueBytes, (at + 1) * valueBytes)
      keys.copyWithin(kept * keyBytes, at * keyBytes, (at + 1) * keyBytes)
      kept++
    }
    return { keys, values, count: kept }
  }
}
