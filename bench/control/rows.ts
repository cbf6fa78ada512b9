// SPDX-License-Identifier: Apache-2.0
/** The agent's pinned maps, read from outside: rows, counts, memory. Layer: bench. */
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { BpfMap, btfById } from '#native'
import { parseBtf } from '#agent/maps/btf.ts'
import type { MapCodecs, MapDefinition, MapName } from '#agent/maps/catalogue.ts'
import { bindMap, catalogue } from '#agent/maps/catalogue.ts'
import { decodeBytes, encodeBytes } from '#agent/maps/byte-rows.ts'
import { InternalError } from '#lib/base/errors.ts'
import { parseAddr } from '#lib/base/ip.ts'

const TCP = 6

/** One pinned map, bound to the types it carries. */
export class PinnedMap<K, V> {
  readonly map: BpfMap
  readonly codecs: MapCodecs<K, V>

  constructor(pinDir: string, definition: MapDefinition<K, V>) {
    this.map = BpfMap.openPin(join(pinDir, 'maps', definition.name))
    const info = this.map.info()
    this.codecs = bindMap(definition, parseBtf(btfById(info.btfId)), info)
  }

  get(key: K): V | undefined {
    const bytes = this.map.lookup(encodeBytes(this.codecs.key, key))
    return bytes === undefined ? undefined : decodeBytes(this.codecs.value, bytes)
  }

  async count(): Promise<number> {
    return (await this.map.dump()).count
  }
}

/** The rows of one service's backends, as bytes: made once, looked up often. */
export class ServiceRows {
  readonly #map: BpfMap
  readonly #keys: readonly Buffer[]

  /** Throws InternalError when the service is not in the maps. */
  constructor(pinDir: string, clusterIp: string) {
    const frontends = new PinnedMap(pinDir, catalogue.np_frontends)
    const frontend = frontends.get({ addr: parseAddr(clusterIp), port: 80, proto: TCP })
    frontends.map.close()
    if (frontend === undefined) throw new InternalError(`no service at ${clusterIp}`)
    const { list, count } = frontend.inside
    const backends = new PinnedMap(pinDir, catalogue.np_backends)
    this.#map = backends.map
    this.#keys = Array.from({ length: count }, (_, slot) => encodeBytes(backends.codecs.key, { list, slot }))
  }

  /** Whether a backend with this address is there. The address is the value's first field. */
  has(addr: Uint8Array): boolean {
    return this.#keys.some((key) => this.#map.lookup(key)?.subarray(0, addr.length).equals(addr))
  }

  close(): void {
    this.#map.close()
  }
}

/** Rows of the service tables. */
export async function countRows(pinDir: string): Promise<{ readonly frontends: number; readonly backends: number }> {
  const frontends = new PinnedMap(pinDir, catalogue.np_frontends)
  const backends = new PinnedMap(pinDir, catalogue.np_backends)
  try {
    return { frontends: await frontends.count(), backends: await backends.count() }
  } finally {
    frontends.map.close()
    backends.map.close()
  }
}

/** MB (1e6) that the kernel accounts to the maps which process `pid` holds, each once; in all and of the largest. */
export function mapMemory(pid: number): { readonly total: number; readonly flows: number } {
  const sizes = [...memoryById(pid).values()]
  return { total: sizes.reduce((sum, size) => sum + size, 0), flows: Math.max(0, ...sizes) }
}

/** Maps that hold policy; np_addrs has the addresses that it applies to. */
const POLICY_MAPS: readonly MapName[] = ['np_addrs', 'np_nets', 'np_bits', 'np_ports', 'np_pages', 'np_rules']

/** MB (1e6) of the maps that hold policy, of those that process `pid` holds. */
export function policyMemory(pid: number, pinDir: string): number {
  const memory = memoryById(pid)
  return POLICY_MAPS.reduce((sum, name) => {
    const map = BpfMap.openPin(join(pinDir, 'maps', name))
    const { id } = map.info()
    map.close()
    return sum + (memory.get(id) ?? 0)
  }, 0)
}

/** MB by map id. */
function memoryById(pid: number): ReadonlyMap<number, number> {
  const maps = new Map<number, number>()
  const folder = `/proc/${pid}/fdinfo`
  for (const fd of readdirSync(folder)) {
    const text = readFileSync(join(folder, fd), 'utf8')
    const field = (name: string): number => Number(new RegExp(`^${name}:\\s*(\\S+)`, 'm').exec(text)?.[1])
    const id = field('map_id')
    if (!Number.isNaN(id)) maps.set(id, field('memlock') / 1e6)
  }
  return maps
}
