// SPDX-License-Identifier: Apache-2.0
/** The few figures that fit on a page which is read first. Layer: bench (pure). */
import type { Measure, Peer } from '../path/result.ts'
import { backGoalMs, controlGoals, LOSS_GOAL, packetGoals } from './goals.ts'
import type { Results } from './results.ts'
import type { Table } from './tables.ts'
import { asMarkdown, factsLine } from './tables.ts'

const NONE = '–'

/** Markdown, ends with a newline. */
export function pageOf(results: Results): string {
  const tables = [pathPage(results), wirePage(results), packetPage(results), controlPage(results), lossPage(results)].filter(
    (table) => table.rows.length > 0,
  )
  return `${factsLine(results)} The whole of it is in \`bench/results/latest.json\`.\n\n${tables.map(asMarkdown).join('\n')}`
}

/** Whose figures stand beside ours where it is not those of kube-proxy. */
const BESIDE: Readonly<Record<string, { readonly text: string; readonly peers: readonly Peer[] }>> = {
  'nodeport-remote.dsr': { text: ' (Netplane alone)', peers: [] },
  'pod-remote-vxlan': { text: " (Netplane / the kernel's VXLAN device)", peers: ['vxlan'] },
}
const KUBE_PROXY = { text: '', peers: ['iptables', 'nftables'] } as const

function pathPage({ path }: Results): Table {
  const rows = Object.entries(path).map(([id, result]) => {
    const { text, peers } = BESIDE[id] ?? KUBE_PROXY
    const cell = (measure: Measure): string =>
      [result, ...peers.map((peer) => result.peers[peer])].map((ratios) => ratios?.[measure]?.toFixed(2) ?? NONE).join(' / ')
    return [`\`${id}\`${text}`, cell('rr_p50'), cell('crr_p50'), cell('pps')]
  })
  return {
    title:
      'Netplane / iptables / nftables, each as a ratio to the plain path by the same hops, without services (latency: less is better; packets a second: more is)',
    head: ['path', 'request, response', 'connect, request, response', '64-byte UDP packets a second'],
    rows,
  }
}

/** Streams that have a tunnel between the nodes. */
function wirePage({ path }: Results): Table {
  const rows = Object.entries(path)
    .filter(([, result]) => result.tput_wire !== undefined)
    .map(([id, result]) => {
      const cell = (kind: '' | '_wire' | '_wire_9000'): string =>
        `${result[`tput${kind}`]?.toFixed(2) ?? NONE}, ${result[`cpu_per_gbit${kind}`]?.toFixed(2) ?? NONE}`
      return [`\`${id}\``, cell(''), cell('_wire'), cell('_wire_9000')]
    })
  return {
    title: 'A TCP stream in the tunnel, as ratios to plain on the same wire: throughput (more is better), CPU per Gbit (less is)',
    head: ['path', 'packets as large as they were sent', 'packets of 1,500 bytes, merged (GRO)', 'of 9,000 bytes'],
    rows,
  }
}

function packetPage({ packet }: Results): Table {
  const net = (id: string): string => packet[id]?.net_ns.toFixed(0) ?? NONE
  const rows = Object.entries(packetGoals)
    .filter(([id]) => packet[id] !== undefined)
    .map(([id, goal]) => [`\`${id}\``, net(id), net(`${id}.v6`), `≤ ${goal}`])
  return { title: 'What the programs cost a packet, ns (`.new`: the first of a flow)', head: ['packet', 'IPv4', 'IPv6', 'goal'], rows }
}

const CONTROL = [
  ['start with nothing there, s', 'cold_sync_s', '≤ 2 / ≤ 2'],
  ['restart, s', 'warm_restart_s', '≤ 1.5 / ≤ 1'],
  ['map rows written by a restart', 'warm_writes', '0'],
  ['a changed EndpointSlice to the map, ms (median)', 'change_ms_p50', '≤ 5'],
  ['CPU of such a change, ms', 'change_cpu_ms', '≤ 2'],
  ['CPU while nothing changes: tables read back, hooks looked at, % of a core', 'readback_cpu_percent', '≤ 1'],
  ['resident memory, MB', 'rss_mb', '– / ≤ 200'],
  ['BPF maps with all of them, MB', 'map_mb', '–'],
  ['the API source alone until all is in, as Protocol Buffers: CPU beyond its start, s', 'list_cpu_s', '– / ≤ 1'],
  ['resident memory of it at the most, MB', 'list_peak_mb', '– / ≤ 165'],
  ["the same by client-node's informers, as JSON: CPU beyond their start, s", 'client_node_list_cpu_s', '–'],
  ['resident memory of them at the most, MB', 'client_node_list_peak_mb', '–'],
  ['instead with as many pods, and a tenth as many policies: start with nothing there, s', 'policy_sync_s', '– / ≤ 5'],
  ['a new pod to the map, ms (median)', 'policy_pod_ms', '– / ≤ 20'],
  ['resident memory, MB', 'policy_rss_mb', '–'],
] as const

/** Whatever the number of services. */
const ANY_NUMBER = [
  ['resident memory without any, MB', 'rss_mb.idle'],
  ['BPF maps of default size without any, MB', 'map_mb'],
  ['flows that are read, 10,000 new ones a second: CPU, % of a core', 'flow_cpu_percent'],
  ['memory for 100,000 live flows that are read, MB', 'flow_mb.100k'],
] as const

function controlPage({ control }: Results): Table {
  const value = (id: string): string => control[id]?.toString() ?? NONE
  const rows = [
    ...CONTROL.map(([what, id, goal]) => [what, value(`${id}.1k`), value(`${id}.10k`), goal]),
    ...ANY_NUMBER.map(([what, id]) => [what, value(id), '', `≤ ${controlGoals[id] ?? NONE}`]),
  ]
  return {
    title: 'The agent with services of 10 endpoints each',
    head: ['', '1,000 services', '10,000 services', 'goal'],
    rows: Object.keys(control).length > 0 ? rows : [],
  }
}

const FAULTS: Readonly<Record<string, string>> = {
  'agent-kill': 'agents killed at any moment, started again',
  'map-growth': 'a full flow table becomes twice as large',
  upgrade: 'a node of the version before gets this one',
  downgrade: 'a node of this version gets the one before',
  'foreign-removal': 'another program removes what is the agent’s',
  'proxy-switch': 'a node with kube-proxy becomes one with Netplane',
  'port-collision': "a client's port used for a backend, then for its service",
}

function lossPage({ loss }: Results): Table {
  const rows = Object.entries(loss).flatMap(([id, { runs, lost, refused, removed = {} }]) => [
    [FAULTS[id] ?? `\`${id}\``, String(runs), String(lost), String(refused), String(LOSS_GOAL)],
    ...Object.entries(removed).map(([name, one]) => [
      `– ${name}: back after ${Math.round(one.back_ms)} ms`,
      '1',
      String(one.lost),
      String(one.refused),
      `${LOSS_GOAL}, ${backGoalMs(name)} ms`,
    ]),
  ])
  return { title: 'Lost under load', head: ['fault', 'times', 'packets lost', 'connections refused', 'goal'], rows }
}
