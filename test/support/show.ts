// SPDX-License-Identifier: Apache-2.0
/** The wanted data plane as text that can be read in review. Layer: test. */
import { formatAddr, formatCidr, isAny, isV4 } from '#lib/base/ip.ts'
import type { Addr } from '#lib/base/ip.ts'
import { ADDR_LOCAL_POD, ADDR_NODE, ADDR_SELF, FRONTEND_EXTERNAL, FRONTEND_NODE_PORT } from '#lib/base/flags.ts'
import type { AddrRow, BackendRow, DesiredChange, DesiredNode, Fragment, FrontendRow, Row } from '#agent/compile/desired.ts'

/** One line a row, below its owner; owners sorted. */
export function showChange(change: DesiredChange): string {
  const fragments = [...change.fragments].sort((a, b) => (a.owner < b.owner ? -1 : 1)).map(showFragment)
  return [...fragments, ...(change.node === undefined ? [] : [showNode(change.node)])].join('\n')
}

export function showFragment(fragment: Fragment): string {
  return [fragment.owner, ...showRows(fragment.rows).map((line) => `  ${line}`)].join('\n')
}

/** Service ids become #1, #2 … in order of appearance: they are hashes and say nothing. */
export function showRows(rows: readonly Row[]): string[] {
  const names = new Map<string, string>()
  const idName = (id: string): string => {
    const name = names.get(id) ?? `#${names.size + 1}`
    names.set(id, name)
    return name
  }
  return rows.map((row) => {
    switch (row.table) {
      case 'frontends':
        return showFrontend(row, idName(row.value.service))
      case 'backends':
        return showBackend(row, idName(row.key.service))
      case 'addrs':
        return showAddr(row)
    }
  })
}

function showFrontend({ key, value }: FrontendRow, service: string): string {
  const flags = [
    ...((value.flags & FRONTEND_NODE_PORT) === 0 ? [] : ['node-port']),
    ...((value.flags & FRONTEND_EXTERNAL) === 0 ? [] : ['external']),
  ]
  return [`${hostPort(key.addr, key.port)}/${key.proto} -> ${service} of ${value.count}`, ...flags].join(' ')
}

function showBackend({ key, value }: BackendRow, service: string): string {
  return `${service}[${key.slot}] ${hostPort(value.addr, value.port)}${isAny(value.node) ? '' : ` at ${formatAddr(value.node)}`}`
}

function showAddr({ key, value }: AddrRow): string {
  const kinds = new Map([
    [ADDR_LOCAL_POD, 'pod'],
    [ADDR_SELF, 'self'],
    [ADDR_NODE, 'node'],
  ])
  return [formatAddr(key.addr), kinds.get(value.kind) ?? String(value.kind), ...(value.iface === undefined ? [] : [value.iface])].join(' ')
}

export function showNode(node: DesiredNode): string {
  const { knobs } = node
  return [
    `node ${formatAddr(knobs.nodeV4)} ${formatAddr(knobs.nodeV6)}`,
    `  tunnel vni ${knobs.tunnelVni} port ${knobs.tunnelPort}`,
    `  connect-time ${node.connectTime ? [...(knobs.connectTcp ? ['tcp'] : []), ...(knobs.connectUdp ? ['udp'] : [])].join(' ') : 'off'}`,
    ...node.workloads.map(({ iface, pod }) => `  workload ${iface} ${pod}`),
    `  host ${[...node.host.addresses.map(formatAddr), ...(node.host.pattern === undefined ? [] : [`/${node.host.pattern}/`])].join(' ')}`,
    ...node.routes.map(({ cidr, via }) => `  route ${formatCidr(cidr)} via ${formatAddr(via)}`),
    ...Object.entries(node.sysctls).map(([name, value]) => `  sysctl ${name}=${value}`),
  ].join('\n')
}

function hostPort(addr: Addr, port: number): string {
  return isV4(addr) ? `${formatAddr(addr)}:${port}` : `[${formatAddr(addr)}]:${port}`
}
