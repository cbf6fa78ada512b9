// SPDX-License-Identifier: Apache-2.0
/** A node's compiled policy in maps in memory. Layer: test. */
import { ADDR_LOCAL_POD, RULE_CELLS, RULE_WORDS } from '#lib/base/bpf-constants.ts'
import { wordsOf } from '#lib/base/bytes.ts'
import { depthOf } from '#lib/base/ip.ts'
import type { PolicyRow } from '#agent/compile/policy/tables.ts'
import { catalogue } from '#agent/maps/catalogue.ts'
import type { NodeView } from '../../cli/explain/manifests/node-view.ts'
import { addrInfo } from '../../testkit/packets/addr-info.ts'
import { FakeTables } from '../support/fakes/fake-tables.ts'

/** Its pods are there; devices have no rules. */
export function filledTables(view: NodeView): FakeTables {
  const tables = new FakeTables()
  for (const row of view.policy.tables.rows.values()) put(tables, view, row)
  return tables
}

function put(tables: FakeTables, view: NodeView, row: PolicyRow): void {
  switch (row.table) {
    case 'bits':
      return tables.put(catalogue.np_bits, [row.key, { ...row.value, word: wordsOf(row.value.word, RULE_WORDS) }])
    case 'ports':
      return tables.put(catalogue.np_ports, [row.key, { ...row.value, cell: wordsOf(row.value.cell, RULE_CELLS) }])
    case 'pages':
      return tables.put(catalogue.np_pages, [row.key, row.value])
    case 'rules':
      return tables.put(catalogue.np_rules, [row.key, row.value.number])
    case 'nets':
      return tables.put(catalogue.np_nets, [{ prefix: depthOf(row.key.cidr), addr: row.key.cidr.addr }, row.value.identity])
    case 'ends': {
      const { identity, ingress, egress, stagedIngress, stagedEgress } = row.value
      const kind = view.addr(row.key.addr)?.kind === ADDR_LOCAL_POD ? ADDR_LOCAL_POD : 0
      const sets = { ingress, egress, staged_ingress: stagedIngress, staged_egress: stagedEgress }
      return tables.put(catalogue.np_addrs, [row.key.addr, addrInfo(kind, { identity, ...sets })])
    }
    case 'hosts':
  }
}
