// SPDX-License-Identifier: Apache-2.0
/** Pinned maps that would send the agent's own connections elsewhere. Layer: agent/dataplane.
 *
 * They outlive every agent: what one left in them turns the next one's first connection to an API server away,
 * which would never learn otherwise. */
import type { BpfMap } from '#native'
import { ADDR_SELF, ADDR_SERVICE, FRONTEND_EXTERNAL } from '#lib/base/bpf-constants.ts'
import { ANY_V4, ANY_V6, isV4, type Addr, type Port } from '#lib/base/ip.ts'
import type { ListId } from '../../compile/desired.ts'
import { bindMap, catalogue, type MapCodecs, type MapDefinition } from '../../maps/catalogue.ts'
import { decodeBytes, encodeBytes } from '../../maps/byte-rows.ts'
import { typesOf } from './migrate-map.ts'
import { openPin } from './shared-maps.ts'
import type { Pins } from '../pins.ts'

export interface Way {
  readonly pins: Pins
  readonly addr: Addr
  readonly port: Port
  /** backends that are API servers: their service's cluster address is a way to them */
  readonly servers: ReadonlySet<ListId>
}

const TCP = 6

/** Takes away the services in the way to this address and port. Returns what they were: "frontend", "node port",
 * "address". Throws MapError and LayoutError. */
export function clearApiServerPath({ pins, addr, port, servers }: Way): readonly string[] {
  using frontends = Rows.open(pins, catalogue.np_frontends)
  using addrs = Rows.open(pins, catalogue.np_addrs)
  if (frontends === undefined || addrs === undefined) return []
  const dropped = (at: Addr): boolean => {
    const key = { addr: at, port, proto: TCP }
    const found = frontends.get(key)
    const isWay = found !== undefined && (found.flags & FRONTEND_EXTERNAL) === 0 && servers.has(found.inside.list)
    return found !== undefined && !isWay && frontends.delete(key)
  }
  const info = addrs.get(addr)
  const cleared = [
    ...(dropped(addr) ? ['frontend'] : []),
    ...(info?.kind === ADDR_SELF && dropped(isV4(addr) ? ANY_V4 : ANY_V6) ? ['node port'] : []),
  ]
  // what has no frontend there is dropped
  if (info?.kind !== ADDR_SERVICE || frontends.get({ addr, port, proto: TCP }) !== undefined) return cleared
  addrs.set(addr, { ...info, kind: 0 })
  return [...cleared, 'address']
}

/** A pinned map, by the types it carries itself. */
class Rows<K, V> implements Disposable {
  readonly #map: BpfMap
  readonly #codecs: MapCodecs<K, V>

  private constructor(map: BpfMap, codecs: MapCodecs<K, V>) {
    this.#map = map
    this.#codecs = codecs
  }

  /** undefined when nothing is pinned. */
  static open<K, V>(pins: Pins, definition: MapDefinition<K, V>): Rows<K, V> | undefined {
    const map = openPin(pins.map(definition.name), definition.name)
    if (map === undefined) return undefined
    try {
      const types = typesOf(map)
      return new Rows(map, bindMap(definition, types.btf, types))
    } catch (thrown) {
      map.close()
      throw thrown
    }
  }

  get(key: K): V | undefined {
    const value = this.#map.lookup(encodeBytes(this.#codecs.key, key))
    return value === undefined ? undefined : decodeBytes(this.#codecs.value, value)
  }

  set(key: K, value: V): void {
    this.#map.update(encodeBytes(this.#codecs.key, key), encodeBytes(this.#codecs.value, value))
  }

  delete(key: K): boolean {
    return this.#map.delete(encodeBytes(this.#codecs.key, key))
  }

  [Symbol.dispose](): void {
    this.#map.close()
  }
}
