// SPDX-License-Identifier: Apache-2.0
/** The policy tables of this node's pinned maps, looked up row by row. Layer: cli (pure). */
import { textOfWords } from '#lib/base/bytes.ts'
import { catalogue } from '#agent/maps/catalogue.ts'
import type { PolicyLookup } from '#agent/policy/table-rows.ts'
import type { Tables } from '../../map-tables.ts'

/** An address as 128 bits: the map knows no families. */
const WHOLE = 128

export function pinnedPolicy(tables: Tables): PolicyLookup {
  const addrs = tables.open(catalogue.np_addrs)
  const bits = tables.open(catalogue.np_bits)
  const ports = tables.open(catalogue.np_ports)
  const pages = tables.open(catalogue.np_pages)
  const rules = tables.open(catalogue.np_rules)
  const nets = tables.open(catalogue.np_nets)
  return {
    bits(key) {
      const value = bits.get(key)
      return value && { ...value, word: textOfWords(value.word) }
    },
    ports(key) {
      const value = ports.get(key)
      return value && { ...value, cell: textOfWords(value.cell) }
    },
    page: (set, page) => pages.get({ set, page }),
    rule(set, index) {
      const number = rules.get({ set, index })
      return number === undefined ? undefined : { number }
    },
    end(addr) {
      const value = addrs.get(addr)
      if (value === undefined) return undefined
      const { identity, ingress, egress, staged_ingress: stagedIngress, staged_egress: stagedEgress } = value
      return { identity, ingress, egress, stagedIngress, stagedEgress }
    },
    // which endpoint a device is, maps do not say
    host: () => undefined,
    net: (addr) => nets.get({ prefix: WHOLE, addr }),
  }
}
