// SPDX-License-Identifier: Apache-2.0
/** How much of the tables one service may have: of a table that it fills all others' services would suffer.
 * Layer: agent/compile (pure). */
import type { MapSizes } from '../desired.ts'

/** Rows by table; `endpoints`: those of all its ports, whether they become rows or not. */
export type ServiceQuota = Readonly<Record<'frontends' | 'backends' | 'live' | 'maglev' | 'ranges' | 'endpoints', number>>

/** Large services have many endpoints, and few addresses and ports. */
export function serviceQuota({ frontends, backends, live }: MapSizes): ServiceQuota {
  return {
    frontends: Math.ceil(frontends / 8),
    backends: Math.ceil(backends / 4),
    live: Math.ceil(live / 4),
    // an eighth of what the maps have
    maglev: 512,
    ranges: 8192,
    endpoints: backends,
  }
}

/** Of which table there would be too many; undefined: of none. */
export function overQuota(wants: ServiceQuota, most: ServiceQuota): string | undefined {
  const over = TABLES.find(({ table }) => wants[table] > most[table])
  return over && `has more ${over.what} than one Service may have: ${most[over.table]}`
}

const TABLES: readonly { readonly table: keyof ServiceQuota; readonly what: string }[] = [
  { table: 'frontends', what: 'addresses times ports' },
  { table: 'backends', what: 'endpoints of all its ports' },
  { table: 'live', what: 'endpoints of its UDP ports, or of all with affinity,' },
  { table: 'maglev', what: 'ports with Maglev' },
  { table: 'ranges', what: 'source ranges, those of each port counted,' },
  { table: 'endpoints', what: 'endpoints of all its ports, ready or not,' },
]
