// SPDX-License-Identifier: Apache-2.0
/** The wanted knobs and what the kernel can do, as the programs' read-only configuration. Layer: agent/dataplane
 * (pure). */
import type { Configuration } from '../../compile/desired.ts'
import { POD_GATEWAYS } from '../../interfaces/pod-gateways.ts'
import type { NodeCfg } from '../../maps/shapes.ts'
import { whyNoTunnelChecksums, type Features } from './kernel-features.ts'
import { noneIfAny } from '../maps/encode-rows.ts'

/** The bits of a packet's traffic class. */
const [DSCP, ECN] = [0xfc, 0x03]

/** How long a flow goes without a closer look. */
const FRESH_SECONDS = 0.75

/** Slots of np_recent (RECENT_FLOWS), and the least that are used. */
const RECENT = { most: 65_536, least: 64 }

export function nodeConfig({ knobs, mapSizes }: Configuration, features: Features): NodeCfg {
  const { timeouts } = knobs
  return {
    node_v4: noneIfAny(knobs.nodeV4),
    node_v6: noneIfAny(knobs.nodeV6),
    gateway_v4: POD_GATEWAYS.v4,
    gateway_v6: POD_GATEWAYS.v6,
    timeout_tcp_syn: timeouts.tcpSyn,
    timeout_tcp_open: timeouts.tcpOpen,
    timeout_tcp_fin: timeouts.tcpFin,
    timeout_tcp_rst: timeouts.tcpRst,
    timeout_udp: timeouts.udp,
    timeout_udp_stream: timeouts.udpStream,
    timeout_icmp: timeouts.icmp,
    netns: features.netns,
    fresh_jiffies: Math.round(FRESH_SECONDS * features.hz),
    tunnel_vni: knobs.tunnelVni,
    tunnel_port: knobs.tunnelPort,
    nat_port_min: knobs.natPorts.from,
    nat_port_count: knobs.natPorts.to - knobs.natPorts.from + 1,
    redirect_peer: Number(features.redirect_peer === 'yes'),
    redirect_neigh: Number(features.redirect_neigh === 'yes'),
    jiffies: Number(features.jiffies64 === 'yes'),
    decap_udp: Number(features.decap_l4_udp === 'yes'),
    netns_cookies: Number(features.get_netns_cookie === 'yes'),
    coarse_clock: Number(features.ktime_get_coarse_ns === 'yes'),
    connect_udp: Number(knobs.connectUdp),
    connect_tcp: Number(knobs.connectTcp),
    dsr: Number(knobs.dsr),
    source_check: knobs.sourceCheck,
    stray_service: knobs.strayService,
    overlay: Number(knobs.overlay),
    host_policy: Number(knobs.hostPolicy),
    untracked: Number(knobs.untracked),
    pod_to_host: knobs.podToHost,
    cluster_policy: Number(knobs.clusterPolicy),
    recent_mask: recentSlots(mapSizes.conntrack) - 1,
    vteps: Number(knobs.vteps),
    ring_buffer: Number(features.ring_buffer === 'yes'),
    tunnel_class: knobs.tunnelDscp ? DSCP | ECN : ECN,
    tunnel_checksum: Number(knobs.tunnelChecksum && whyNoTunnelChecksums(features) === undefined),
  }
}

/** A power of two: of more flows than half of the table most would have left it before they are looked at. */
function recentSlots(flowTable: number): number {
  return Math.min(RECENT.most, Math.max(RECENT.least, 2 ** Math.floor(Math.log2(flowTable / 2))))
}
