// SPDX-License-Identifier: Apache-2.0
/** Rows of policy to entries of maps. Layer: agent/dataplane (pure). */
import { InternalError } from '#lib/base/errors.ts'
import { RULE_CELLS, RULE_WORDS } from '#lib/base/bpf-constants.ts'
import { wordsOf } from '#lib/base/bytes.ts'
import { depthOf } from '#lib/base/ip.ts'
import type { EndValue, PolicyRow, PolicyTable } from '#agent/compile/policy/tables.ts'
import { catalogue } from '#agent/maps/catalogue.ts'
import { entryWriter, type Entry } from '#agent/maps/byte-rows.ts'
import type { BindMap } from '../maps/encode-rows.ts'

/** Tables of which each row is one of a map's, np_<table>. */
export const PLAIN_TABLES = ['rules', 'bits', 'pages', 'ports', 'nets'] as const satisfies readonly PolicyTable[]

/** Those of `ends` leave out what the address is; those of `hosts` have no map of their own and are refused. */
export function policyWriter(bind: BindMap): (row: PolicyRow) => Entry {
  const bits = entryWriter(bind(catalogue.np_bits))
  const ports = entryWriter(bind(catalogue.np_ports))
  const pages = entryWriter(bind(catalogue.np_pages))
  const rules = entryWriter(bind(catalogue.np_rules))
  const nets = entryWriter(bind(catalogue.np_nets))
  const addrs = entryWriter(bind(catalogue.np_addrs))
  return (row) => {
    switch (row.table) {
      case 'bits':
        return bits([row.key, { ...row.value, word: wordsOf(row.value.word, RULE_WORDS) }])
      case 'ports':
        return ports([row.key, { ...row.value, cell: wordsOf(row.value.cell, RULE_CELLS) }])
      case 'pages':
        return pages([row.key, row.value])
      case 'rules':
        return rules([row.key, row.value.number])
      case 'nets':
        return nets([{ prefix: depthOf(row.key.cidr), addr: row.key.cidr.addr }, row.value.identity])
      case 'ends':
        return addrs([row.key.addr, { kind: 0, flags: 0, ifindex: 0, ...endOf(row.value) }])
      case 'hosts':
        throw new InternalError('a host endpoint is no row of a map')
    }
  }
}

function endOf({ identity, ingress, egress, stagedIngress, stagedEgress }: EndValue) {
  return { identity, ingress, egress, staged_ingress: stagedIngress, staged_egress: stagedEgress }
}
