// SPDX-License-Identifier: Apache-2.0
/** The wanted data plane as JSON that people read: addresses as text, owners as keys. Layer: agent. */
import { fnv1a64 } from '#lib/base/hash.ts'
import { formatAddr, formatCidr, type Addr } from '#lib/base/ip.ts'
import { unreachable } from '#lib/base/result.ts'
import type { DesiredChange, DesiredNode, Row } from '../compile/desired.ts'
import { formatPolicy } from './format-policy.ts'

/** Of a whole. Sorted by owner; two spaces of indent. `ruleNames`: of policy, by number. */
export function formatDesired(desired: DesiredChange, ruleNames: ReadonlyMap<number, string>): string {
  const owners = [...desired.fragments].sort((a, b) => (a.owner < b.owner ? -1 : 1))
  const rows = Object.fromEntries(owners.map((fragment) => [fragment.owner, fragment.rows.map(rowText)]))
  const policy = formatPolicy(desired.policy, ruleNames)
  return `${JSON.stringify({ node: desired.node === undefined ? undefined : nodeText(desired.node), rows, policy }, null, 2)}\n`
}

function rowText({ table, key, value }: Row): unknown {
  switch (table) {
    case 'frontends':
    case 'live':
    case 'addrs':
    case 'vteps':
      return { table, key: { ...key, addr: formatAddr(key.addr) }, value }
    case 'backends':
      return { table, key, value: { ...value, addr: formatAddr(value.addr), node: formatAddr(value.node) } }
    case 'maglev':
      return { table, key, value: { digest: fnv1a64(value.slots.join()) } }
    case 'spared':
      return { table, key }
    case 'failsafes':
    case 'ranges':
      return { table, key: { ...key, cidr: formatCidr(key.cidr) } }
    case 'routes':
      return { table, key: { cidr: formatCidr(key.cidr) }, value: { node: formatAddr(value.node) } }
    default:
      return unreachable(table)
  }
}

function nodeText(node: DesiredNode): unknown {
  const { knobs } = node
  const text = (addr: Addr): string => formatAddr(addr)
  return {
    ...node,
    knobs: { ...knobs, nodeV4: text(knobs.nodeV4), nodeV6: text(knobs.nodeV6) },
    host: { ...node.host, addresses: node.host.addresses.map(text), elsewhere: node.host.elsewhere.map(text) },
    nodePortAddresses: node.nodePortAddresses.map(formatCidr),
    routes: node.routes.map(({ cidr, via, overlay }) => ({ cidr: formatCidr(cidr), via: text(via), overlay })),
  }
}
