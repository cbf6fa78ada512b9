// SPDX-License-Identifier: Apache-2.0
/** The wanted data plane as text that can be read in review. Layer: test. */
import { formatAddr, formatCidr, hostPort, isAny } from '#lib/base/ip.ts'
import {
  ADDR_LOCAL_POD,
  ADDR_EXTERNAL,
  ADDR_MASQUERADE,
  ADDR_NODE,
  ADDR_NODE_PORTS,
  ADDR_ROUTED,
  ADDR_SELF,
  ADDR_SERVICE,
  FAILSAFE_IN,
  FRONTEND_EXTERNAL,
  FRONTEND_INSIDE_LOCAL,
  FRONTEND_MAGLEV,
  FRONTEND_NODE_PORT,
  FRONTEND_OUTSIDE_LOCAL,
  FRONTEND_PODS,
  FRONTEND_RANGES,
  FRONTEND_TUNNEL,
  LIVE_CHOSEN,
  OWN_SLOTS,
  RANGE_INSIDE,
  RANGE_TUNNEL_BACK,
} from '#lib/base/bpf-constants.ts'
import type { AddrRow, DesiredChange, DesiredNode, Fragment, FrontendRow, Row } from '#agent/compile/desired.ts'

/** One line a row, below its owner; owners sorted. */
export function showChange(change: DesiredChange): string {
  const fragments = [...change.fragments].sort((a, b) => (a.owner < b.owner ? -1 : 1)).map(showFragment)
  return [...fragments, ...(change.node === undefined ? [] : [showNode(change.node)])].join('\n')
}

export function showFragment(fragment: Fragment): string {
  return [fragment.owner, ...showRows(fragment.rows).map((line) => `  ${line}`)].join('\n')
}

/** Lists become #1, #2 … in order of appearance: their ids are hashes and say nothing. */
export function showRows(rows: readonly Row[]): string[] {
  const names = new Map<string, string>([
    [hexId(RANGE_INSIDE), 'inside'],
    [hexId(RANGE_TUNNEL_BACK), 'tunnel-back'],
  ])
  let lists = 0
  const nameOf = (list: string): string => {
    const name = names.get(list) ?? `#${++lists}`
    names.set(list, name)
    return name
  }
  return rows.map((row) => showRow(row, nameOf))
}

function showRow(row: Row, nameOf: (list: string) => string): string {
  switch (row.table) {
    case 'frontends':
      return showFrontend(row, nameOf)
    case 'backends': {
      const { addr, port, node } = row.value
      const { list, slot } = row.key
      const place = slot < OWN_SLOTS ? `[${slot}]` : ` own[${slot - OWN_SLOTS}]`
      return `${nameOf(list)}${place} ${hostPort(formatAddr(addr), port)}${isAny(node) ? '' : ` at ${formatAddr(node)}`}`
    }
    case 'live': {
      const chosen = (row.value.flags & LIVE_CHOSEN) !== 0 ? `[${row.value.slot}]` : ''
      return `${nameOf(row.key.list)} live${chosen} ${hostPort(formatAddr(row.key.addr), row.key.port)}`
    }
    case 'maglev':
      return `${nameOf(row.key.list)} maglev of ${new Set(row.value.slots).size}`
    case 'ranges':
      return `${nameOf(row.key.set)} range ${formatCidr(row.key.cidr)}`
    case 'routes':
      return `${formatCidr(row.key.cidr)} at ${formatAddr(row.value.node)}`
    case 'vteps':
      return `${formatAddr(row.key.addr)} takes frames for ${row.value.mac}`
    case 'spared':
      return `spared ${row.key.slot}`
    case 'failsafes': {
      const { direction, protocol, port, cidr } = row.key
      return `failsafe ${direction === FAILSAFE_IN ? 'in' : 'out'} ${protocol}:${port} ${formatCidr(cidr)}`
    }
    case 'addrs':
      return showAddr(row)
  }
}

/** One list when it is the same for all, else inside's, then outside's. */
function showFrontend({ key, value }: FrontendRow, nameOf: (list: string) => string): string {
  const { inside, outside, flags, affinity } = value
  const choices = [`${nameOf(inside.list)} of ${inside.count}`]
  if (outside.list !== inside.list || outside.count !== inside.count) choices.push(`outside ${nameOf(outside.list)} of ${outside.count}`)
  const words = wordsOf(flags, FRONTEND_WORDS)
  return [
    `${hostPort(formatAddr(key.addr), key.port)}/${key.proto} -> ${choices.join(', ')}`,
    ...words,
    ...(affinity === 0 ? [] : [`${affinity}s`]),
  ].join(' ')
}

function showAddr({ key, value }: AddrRow): string {
  const { kind, flags, iface } = value
  return [
    formatAddr(key.addr),
    kind === 0 && flags === 0 ? 'of no kind' : (KIND_WORDS.get(kind) ?? String(kind)),
    ...(iface === undefined ? [] : [iface]),
    ...wordsOf(flags, ADDR_WORDS),
  ].join(' ')
}

const FRONTEND_WORDS = new Map([
  [FRONTEND_NODE_PORT, 'node-port'],
  [FRONTEND_EXTERNAL, 'external'],
  [FRONTEND_PODS, 'pods'],
  [FRONTEND_TUNNEL, 'tunnel'],
  [FRONTEND_RANGES, 'ranges'],
  [FRONTEND_MAGLEV, 'maglev'],
  [FRONTEND_INSIDE_LOCAL, 'inside-local'],
  [FRONTEND_OUTSIDE_LOCAL, 'outside-local'],
])
const ADDR_WORDS = new Map([
  [ADDR_NODE_PORTS, 'node-ports'],
  [ADDR_MASQUERADE, 'masquerade'],
  [ADDR_ROUTED, 'routed'],
  [ADDR_EXTERNAL, 'external'],
])
const KIND_WORDS = new Map([
  [0, 'service'],
  [ADDR_LOCAL_POD, 'pod'],
  [ADDR_SELF, 'self'],
  [ADDR_NODE, 'node'],
  [ADDR_SERVICE, 'service'],
])

function wordsOf(flags: number, words: ReadonlyMap<number, string>): string[] {
  return [...words].filter(([flag]) => (flags & flag) !== 0).map(([, word]) => word)
}

function hexId(set: number): string {
  return set.toString(16).padStart(16, '0')
}

export function showNode(node: DesiredNode): string {
  const { knobs } = node
  return [
    `node ${formatAddr(knobs.nodeV4)} ${formatAddr(knobs.nodeV6)}`,
    `  tunnel vni ${knobs.tunnelVni} port ${knobs.tunnelPort}`,
    `  connect-time ${[...(knobs.connectTcp ? ['tcp'] : []), ...(knobs.connectUdp ? ['udp'] : [])].join(' ') || 'off'}`,
    ...node.workloads.map(({ iface, pod }) => `  workload ${iface} ${pod}`),
    `  host ${[...node.host.addresses.map(formatAddr), ...(node.host.pattern === undefined ? [] : [`/${node.host.pattern}/`])].join(' ')}`,
    ...node.routes.map(({ cidr, via, overlay }) => `  route ${formatCidr(cidr)} via ${formatAddr(via)}${overlay ? ' in the tunnel' : ''}`),
    ...node.healthChecks.map(({ namespace, name, port, localReady }) => `  health ${port} ${namespace}/${name} ${localReady}`),
    ...Object.entries(node.sysctls).map(([name, value]) => `  sysctl ${name}${value === undefined ? ' as it was' : `=${value}`}`),
  ].join('\n')
}
