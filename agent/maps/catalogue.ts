// SPDX-License-Identifier: Apache-2.0
/** Our maps: what is in them and who decides their size. Layer: agent/maps. */
import type { Btf } from './btf.ts'
import type { Codec } from './codec.ts'
import { bind, bindKey } from './codec.ts'
import type { Field } from './kinds.ts'
import { addr, u32, u64 } from './kinds.ts'
import { layoutOf } from './layout.ts'
import * as shapes from './shapes.ts'

/** Whose setting `max_entries` is; `object`: what the C source says. */
export type Sizer = 'conntrack' | 'frontends' | 'backends' | 'addrs' | 'object'

export interface MapDefinition<K, V> {
  readonly name: string
  readonly key: Field<K>
  readonly value: Field<V>
  /** one value for each possible CPU, each rounded up to 8 bytes */
  readonly perCpu: boolean
  readonly sizedBy: Sizer
  /** What a new layout or size does to the entries: `copy` those that can be (nobody else knows them), or let the agent `rewrite` all rows. */
  readonly onChange: 'copy' | 'rewrite'
}

/** By name, which is the name of the pin as well. */
export const catalogue = {
  np_ct: define({ name: 'np_ct', key: shapes.ctKey, value: shapes.ctValue, sizedBy: 'conntrack', onChange: 'copy' }),
  np_frontends: define({
    name: 'np_frontends',
    key: shapes.frontendKey,
    value: shapes.frontend,
    sizedBy: 'frontends',
    onChange: 'rewrite',
  }),
  np_backends: define({ name: 'np_backends', key: shapes.backendKey, value: shapes.backend, sizedBy: 'backends', onChange: 'rewrite' }),
  np_addrs: define({ name: 'np_addrs', key: addr, value: shapes.addrInfo, sizedBy: 'addrs', onChange: 'rewrite' }),
  np_ifaces: define({ name: 'np_ifaces', key: u32, value: shapes.iface, sizedBy: 'object', onChange: 'rewrite' }),
  np_frags: define({ name: 'np_frags', key: shapes.fragKey, value: shapes.frag, sizedBy: 'object', onChange: 'copy' }),
  np_sockets: define({ name: 'np_sockets', key: shapes.socketKey, value: shapes.socketService, sizedBy: 'object', onChange: 'copy' }),
  np_counters: define({ name: 'np_counters', key: u32, value: u64, sizedBy: 'object', onChange: 'copy', perCpu: true }),
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

function define<K, V>(given: Omit<MapDefinition<K, V>, 'perCpu'> & { readonly perCpu?: boolean }): MapDefinition<K, V> {
  return { perCpu: false, ...given }
}
