// SPDX-License-Identifier: Apache-2.0
/** Addresses and prefixes as schemas: what ip.ts reads, and no more. Layer: lib/base. */
import type { Constraint, Schema } from './schema.ts'

const OCTET = '(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])'
const V4 = `(${OCTET}\\.){3}${OCTET}`
const V6 = `[0-9a-fA-F:]*:([0-9a-fA-F:]*|${V4})`
const GROUP = '[0-9a-fA-F]{1,4}'
/** IPv4 inside IPv6, which would be a second name of an IPv4 address: ffff behind five groups of zero. Those before it
 * may be left out where both groups behind it are written; else all five are there. */
const MAPPED: Constraint = {
  pattern: `^([0:]*:[fF]{4}:(${GROUP}:${GROUP}|[0-9]+\\.[0-9.]*)|(0{1,4}:){5}[fF]{4}:(:(${GROUP})?|${GROUP}::))(/.*)?$`,
}
const NOT_MAPPED: Pick<Schema, 'not'> = { not: MAPPED }

// zones and leading zeros are understood by others, so patterns stand beside formats
const ADDRESSES: readonly Constraint[] = [{ pattern: `^${V4}$` }, { format: 'ipv6', pattern: `^${V6}$` }]
const PREFIXES: readonly Constraint[] = [
  { pattern: `^${V4}/(3[0-2]|[12]?[0-9])$` },
  { format: 'cidr', pattern: `^${V6}/(12[0-8]|1[01][0-9]|[1-9]?[0-9])$` },
]

/** Six groups of four digits, and an IPv4 address in the place of the other two. */
const LONGEST = 45
const LONGEST_PREFIX = LONGEST + '/128'.length

export const ADDRESS_SCHEMA: Schema = { type: 'string', maxLength: LONGEST, anyOf: ADDRESSES, ...NOT_MAPPED }
export const CIDR_SCHEMA: Schema = { type: 'string', maxLength: LONGEST_PREFIX, anyOf: PREFIXES, ...NOT_MAPPED }
/** A prefix, or an address alone. */
export const NET_SCHEMA: Schema = { type: 'string', maxLength: LONGEST_PREFIX, anyOf: [...ADDRESSES, ...PREFIXES], ...NOT_MAPPED }

/** An address that is none of those: each pattern is of a whole one. */
export function addressSchemaWithout(patterns: readonly string[]): Schema {
  return { ...ADDRESS_SCHEMA, not: { anyOf: [MAPPED, { pattern: `^(${patterns.join('|')})$` }] } }
}
