// SPDX-License-Identifier: Apache-2.0
/** Our maps: what is in them and what decides their size. Layer: agent/maps. */
import type { Btf } from './btf.ts'
import type { Codec } from './codec.ts'
import { bind, bindKey } from './codec.ts'
import type { Field } from './field-kinds.ts'
import { addr, id64, u32, u64 } from './field-kinds.ts'
import { layoutOf } from './layout.ts'
import * as shapes from './shapes.ts'

/** Whose setting `max_entries` is; `object`: what the C source says. */
export type Sizer = 'conntrack' | 'frontends' | 'backends' | 'affinity' | 'addrs' | 'live' | 'object'

export interface MapDefinition<K, V> {
  readonly name: string
  readonly key: Field<K>
  readonly value: Field<V>
  /** one value for each possible CPU, each rounded up to 8 bytes */
  readonly perCpu: boolean
  readonly sizedBy: Sizer
  /** What a new layout or size does to the entries: `copy` those that can be (they are kept nowhere else), or let the
   * agent `rewrite` all rows. */
  readonly onChange: 'copy' | 'rewrite'
}

/** The pins of the maps are in the folder `maps` below it. */
export const DEFAULT_PIN_DIR = '/sys/fs/bpf/netplane'

/** By name, which is the name of the pin as well. */
export const catalogue = {
  np_ct: define({ name: 'np_ct', key: shapes.ctKey, value: shapes.ctValue, sizedBy: 'conntrack', onChange: 'copy' }),
  np_recent: define({ name: 'np_recent', key: u32, value: shapes.ctKey, onChange: 'copy' }),
  np_pressure: define({ name: 'np_pressure', key: u32, value: shapes.pressure, onChange: 'copy' }),
  np_older: define({ name: 'np_older', key: shapes.ctKey, value: shapes.older, onChange: 'copy' }),
  np_frontends: define({ name: 'np_frontends', key: shapes.frontendKey, value: shapes.frontend, sizedBy: 'frontends' }),
  np_backends: define({ name: 'np_backends', key: shapes.backendKey, value: shapes.backend, sizedBy: 'backends' }),
  np_live: define({ name: 'np_live', key: shapes.liveKey, value: shapes.live, sizedBy: 'live' }),
  np_maglev: define({ name: 'np_maglev', key: id64, value: shapes.maglev }),
  np_affinity: define({ name: 'np_affinity', key: shapes.affinityKey, value: shapes.affinity, sizedBy: 'affinity', onChange: 'copy' }),
  np_ranges: define({ name: 'np_ranges', key: shapes.rangeKey, value: u32 }),
  np_routes: define({ name: 'np_routes', key: shapes.netKey, value: shapes.route }),
  np_vteps: define({ name: 'np_vteps', key: addr, value: shapes.vtep }),
  np_nets: define({ name: 'np_nets', key: shapes.netKey, value: u32 }),
  np_bits: define({ name: 'np_bits', key: shapes.bitsKey, value: shapes.bits }),
  np_ports: define({ name: 'np_ports', key: shapes.portsKey, value: shapes.ports }),
  np_pages: define({ name: 'np_pages', key: shapes.pageKey, value: shapes.portsPage }),
  np_rules: define({ name: 'np_rules', key: shapes.ruleKey, value: u32 }),
  np_hosts: define({ name: 'np_hosts', key: shapes.hostKey, value: shapes.hostSets }),
  np_untracked: define({ name: 'np_untracked', key: u32, value: id64 }),
  np_spared: define({ name: 'np_spared', key: u32, value: u32 }),
  np_failsafes: define({ name: 'np_failsafes', key: shapes.failsafeKey, value: u32 }),
  np_addrs: define({ name: 'np_addrs', key: addr, value: shapes.addrInfo, sizedBy: 'addrs' }),
  np_ifaces: define({ name: 'np_ifaces', key: u32, value: shapes.iface }),
  np_state: define({ name: 'np_state', key: u32, value: shapes.nodeState, onChange: 'copy' }),
  np_frags: define({ name: 'np_frags', key: shapes.fragKey, value: shapes.frag, onChange: 'copy' }),
  np_paths: define({ name: 'np_paths', key: addr, value: shapes.path, onChange: 'copy' }),
  np_links: define({ name: 'np_links', key: u32, value: shapes.linkAddr, onChange: 'copy' }),
  np_sockets: define({ name: 'np_sockets', key: shapes.socketKey, value: shapes.socketPeer, onChange: 'copy' }),
  np_counters: define({ name: 'np_counters', key: u32, value: u64, onChange: 'copy', perCpu: true }),
}

export type MapName = keyof typeof catalogue

/** Those of one map, bound to a BTF that describes it: an object's, or the one a pinned map carries. */
export interface MapCodecs<K, V> {
  readonly key: Codec<K>
  readonly value: Codec<V>
}

/** Throws LayoutError when the map's types are not what the catalogue says. */
export function bindMap<K, V>(
  definition: MapDefinition<K, V>,
  btf: Btf,
  typeIds: { readonly keyTypeId: number; readonly valueTypeId: number },
): MapCodecs<K, V> {
  return {
    key: bindKey(definition.key, layoutOf(btf, typeIds.keyTypeId)),
    value: bind(definition.value, layoutOf(btf, typeIds.valueTypeId)),
  }
}

type Given<K, V> = Pick<MapDefinition<K, V>, 'name' | 'key' | 'value'> & Partial<MapDefinition<K, V>>

/** What is not said: sized by the object, all rows the agent's, one value a key. */
function define<K, V>(given: Given<K, V>): MapDefinition<K, V> {
  return { perCpu: false, sizedBy: 'object', onChange: 'rewrite', ...given }
}
