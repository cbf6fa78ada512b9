// SPDX-License-Identifier: Apache-2.0
/** The numbers to beat. Layer: bench (pure). */
import type { Measure } from '../path/result.ts'

/** ns a packet at most; the same for IPv6. */
export const packetGoals: Readonly<Record<string, number>> = {
  'pod-pod.est': 130,
  'ext-pod.est': 120,
  'clusterip.est': 180,
  'clusterip.reply': 180,
  'nodeport-local.est': 180,
  'nodeport-local.reply': 200,
  'nodeport-remote.second': 200,
  accounting: 8,
  'pod-pod.new': 550,
  'pod-pod.new.used': 620,
  'clusterip.new': 850,
  'clusterip.new.used': 1000,
  'nodeport-local.new': 950,
  'nodeport-local.new.used': 1000,
  'policy.selector.1': 300,
  'policy.selector.10': 300,
  'policy.selector.100': 300,
  'policy.selector.1000': 300,
  'policy.overlap.1000': 300,
  'policy.cidr.1000': 330,
  'policy.port.1000': 330,
  'xdp.1': 90,
  'xdp.10': 90,
  'xdp.100': 90,
  'xdp.1.stranger': 200,
  'xdp.10.stranger': 200,
  'xdp.100.stranger': 200,
}

/** Streams in the tunnel. */
const tunnelled = {
  ...{ tput: 0.97, cpu_per_gbit: 1.03 },
  ...{ tput_wire: 0.9, cpu_per_gbit_wire: 1.12, tput_wire_9000: 0.97, cpu_per_gbit_wire_9000: 1.03 },
} as const

/** Ratios to the plain path: at most for times, at least for rates. */
const pathGoals: Readonly<Record<string, Readonly<Partial<Record<Measure, number>>>>> = {
  'pod-local': { rr_p50: 0.95, crr_p50: 1.02, pps: 1.1, tput: 0.95, cpu_per_gbit: 1 },
  'pod-remote': { rr_p50: 1.02, crr_p50: 1.05, pps: 1, tput: 0.95, cpu_per_gbit: 1 },
  'clusterip-local.ctlb': { rr_p50: 1.02, crr_p50: 1.04, tput: 0.95, cpu_per_gbit: 1 },
  'clusterip-local.packet': { rr_p50: 1.05, crr_p50: 1.08, tput: 0.95, cpu_per_gbit: 1 },
  'nodeport-local': { rr_p50: 1.03, crr_p50: 1.06, pps: 0.95, tput: 0.95, cpu_per_gbit: 1 },
  'nodeport-remote.tunnel': { rr_p50: 1.15, crr_p50: 1.25, pps: 0.7, ...tunnelled },
  'nodeport-remote.dsr': { rr_p50: 1.08, crr_p50: 1.15, pps: 0.9, ...tunnelled },
  'pod-remote-vxlan': { rr_p50: 1.3, crr_p50: 1.5, pps: 0.7, ...tunnelled },
}

/** Peers to be ahead of as well. */
const ahead: Readonly<Record<string, string>> = { 'pod-remote-vxlan': 'vxlan' }

/** The stricter one where a peer is to be beaten too; `peers`: their ratios. */
export function pathGoal(
  id: string,
  measure: Measure,
  peers: Readonly<Record<string, Readonly<Partial<Record<Measure, number>>>>>,
): number | undefined {
  const goal = pathGoals[id]?.[measure]
  const other = peers[ahead[id] ?? '']?.[measure]
  if (goal === undefined || other === undefined) return goal
  return isRate(measure) ? Math.max(goal, other) : Math.min(goal, other)
}

/** At most. */
export const controlGoals: Readonly<Record<string, number>> = {
  'cold_sync_s.1k': 2,
  'cold_sync_s.10k': 2,
  'warm_restart_s.1k': 1.5,
  'warm_restart_s.10k': 1,
  'warm_writes.1k': 0,
  'warm_writes.10k': 0,
  'change_ms_p50.1k': 5,
  'change_ms_p50.10k': 5,
  'change_cpu_ms.1k': 2,
  'change_cpu_ms.10k': 2,
  'readback_cpu_percent.1k': 1,
  'readback_cpu_percent.10k': 1,
  'rss_mb.idle': 110,
  'rss_mb.10k': 200,
  map_mb: 140,
  'list_cpu_s.10k': 1,
  'list_peak_mb.10k': 165,
  'policy_sync_s.10k': 5,
  'policy_pod_ms.10k': 20,
  flow_cpu_percent: 15,
  'flow_mb.100k': 40,
}

/** Packets and connections lost, whatever happens. */
export const LOSS_GOAL = 0

/** Rows of tables, which are read back one table after the other. */
const BY_ROUND: ReadonlySet<string> = new Set(['frontend', 'address'])

/** ms until what another program has removed is there again, at most. */
export function backGoalMs(removed: string): number {
  return BY_ROUND.has(removed) ? 60_000 : 1000
}

export function packetGoal(id: string): number | undefined {
  return packetGoals[id.replace('.v6', '')]
}

/** Whether more of it is better. */
export function isRate(measure: Measure): boolean {
  return measure === 'pps' || measure.startsWith('tput')
}
