// SPDX-License-Identifier: Apache-2.0
/** What pinned maps know of an address: its row, or that it is of a prefix of the node. Layer: cli (pure). */
import { ADDR_NODE_PORTS, ADDR_SELF, RANGE_NODE_PORTS, RANGE_OWN } from '#lib/base/bpf-constants.ts'
import type { Addr } from '#lib/base/ip.ts'
import { setId } from '#agent/compile/services/list-ids.ts'
import { catalogue } from '#agent/maps/catalogue.ts'
import type { AddrInfo } from '#agent/maps/shapes.ts'
import { SET_BITS } from '../../bpf/routes.ts'
import type { Tables } from '../../map-tables.ts'

/** undefined: nothing */
export function addressKind(tables: Tables, addr: Addr): Pick<AddrInfo, 'kind' | 'flags'> | undefined {
  const row = tables.open(catalogue.np_addrs).get(addr)
  if (row !== undefined && row.kind !== 0) return row
  const ranges = tables.open(catalogue.np_ranges)
  const isIn = (set: number): boolean => ranges.get({ prefix: SET_BITS + 128, set: setId(set), addr }) !== undefined
  return isIn(RANGE_OWN) ? { kind: ADDR_SELF, flags: isIn(RANGE_NODE_PORTS) ? ADDR_NODE_PORTS : 0 } : row
}
