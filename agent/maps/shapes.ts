// SPDX-License-Identifier: Apache-2.0
/** The structs of bpf/include/types as TypeScript sees them. Layer: agent/maps. */
import { MAGLEV_SIZE, RULE_CELLS, RULE_WORDS } from '#lib/base/bpf-constants.ts'
import type { ShapeType } from './field-kinds.ts'
import { addr, arrayOf, be16, be32, bigId, bitList, id64, mac, ns, shape, u16, u16List, u32, u64, u8 } from './field-kinds.ts'

export const frontendKey = shape('frontend_key', { addr, port: be16, proto: u8 })
export const choice = shape('choice', { list: id64, count: u32 })
export const frontend = shape('frontend', { inside: choice, outside: choice, flags: u32, affinity: u32 })

export const backendKey = shape('backend_key', { list: id64, slot: u32 })
export const backend = shape('backend', { addr, node: addr, port: be16, flags: u16 })

export const liveKey = shape('live_key', { list: id64, addr, port: be16 })
export const live = shape('live', { flags: u32, slot: u32 })

export const affinityKey = shape('affinity_key', { list: id64, client: addr })
export const affinity = shape('affinity', { seen: ns, addr, port: be16 })

export const maglev = shape('maglev', { slot: u16List(MAGLEV_SIZE) })

/** A set of prefixes is one of enum range_set or a list of backends, as 16 hex digits either way. */
export const rangeKey = shape('range_key', { prefix: u32, set: bigId, addr })

export const netKey = shape('net_key', { prefix: u32, addr })
export const route = shape('route', { node: addr })

/** A set of rules is 16 hex digits, all zero for none. */
export const addrInfo = shape('addr_info', {
  kind: u16,
  flags: u16,
  ifindex: u32,
  identity: u32,
  ingress: id64,
  egress: id64,
  staged_ingress: id64,
  staged_egress: id64,
})

export const bitsKey = shape('bits_key', { set: id64, class: u32, block: u16, dimension: u8 })
export const bits = shape('bits', { word: bitList(RULE_WORDS), sure: u32 })
export const portsKey = shape('ports_key', { set: id64, block: u16, proto: u8, source: u8 })
export const ports = shape('ports', { blocks: u16, words: u8, flags: u8, begins: u16, cell: bitList(RULE_CELLS), at: u16List(256) })
export const pageKey = shape('page_key', { set: id64, page: u32 })
export const portsPage = shape('ports_page', { class: u16List(256) })
export const ruleKey = shape('rule_key', { set: id64, index: u32 })
export const hostKey = shape('host_key', { ifindex: u32, view: u32 })
export const hostSets = shape('host_sets', {
  untracked_ingress: id64,
  untracked_egress: id64,
  early_ingress: id64,
  forward_ingress: id64,
  forward_egress: id64,
  normal_ingress: id64,
  normal_egress: id64,
})
export const failsafeKey = shape('failsafe_key', { prefix: u32, direction: u8, proto: u8, port: be16, addr })

export const iface = shape('iface', { mtu: u32, kind: u16, mac })
export const vtep = shape('vtep', { mac })

export const ctKey = shape('ct_key', { lo: addr, hi: addr, lo_port: be16, hi_port: be16, proto: u8, lane: u16 })
export const ctTuple = shape('ct_tuple', { src: addr, dst: addr, sport: be16, dport: be16 })
export const ctLeg = shape('ct_leg', {
  ifindex: u32,
  mtu: u16,
  flags: u16,
  ack: u32,
  window: u16,
  wscale: u8,
  hook: u8,
  bytes: u64,
  packets: u32,
  met: u8,
})
export const ctValue = shape('ct_value', {
  seen: ns,
  out: ctTuple,
  state: u8,
  epoch: u8,
  lane: u16,
  via: addr,
  leg: arrayOf(ctLeg, 2),
  slot: u32,
  egress_rule: u32,
  ingress_rule: u32,
  staged_egress_rule: u32,
  staged_ingress_rule: u32,
  device: u32,
})

export const fragKey = shape('frag_key', { src: addr, dst: addr, id: be32, proto: u8 })
export const path = shape('path', { until: ns, mtu: u32 })
export const linkAddr = shape('link_addr', { addr, since: ns })
export const frag = shape('frag', { sport: be16, dport: be16, heads: u16, proto: u8 })

/** The cookie is an id, not a count: the kernel hands out some from 2^64 downwards. */
export const socketKey = shape('socket_key', { cookie: id64, addr, port: be16, proto: u8, role: u8 })
export const socketPeer = shape('socket_peer', { addr, port: be16 })

export const flowEvent = shape('flow_event', {
  at: ns,
  sent: ctTuple,
  flow: ctTuple,
  egress_rule: u32,
  ingress_rule: u32,
  staged_egress_rule: u32,
  staged_ingress_rule: u32,
  device: u32,
  length: u16,
  kind: u8,
  reason: u8,
  proto: u8,
  hook: u8,
  tunnelled: u8,
  lane: u16,
})

export const pressure = shape('pressure', { full_at: ns, blocks: u32 })
export const older = shape('older', { until: ns, opener: u32 })
export const nodeState = shape('node_state', { takeover_until: ns, epoch: u32, own_prefixes: u32, accounts: u32, tunnel_device: u32 })

export const nodeCfg = shape('node_cfg', {
  node_v4: addr,
  node_v6: addr,
  gateway_v4: addr,
  gateway_v6: addr,
  timeout_tcp_syn: ns,
  timeout_tcp_open: ns,
  timeout_tcp_fin: ns,
  timeout_tcp_rst: ns,
  timeout_udp: ns,
  timeout_udp_stream: ns,
  timeout_icmp: ns,
  netns: id64,
  fresh_jiffies: u32,
  tunnel_vni: u32,
  recent_mask: u32,
  tunnel_port: be16,
  nat_port_min: u16,
  nat_port_count: u16,
  redirect_peer: u8,
  redirect_neigh: u8,
  coarse_clock: u8,
  jiffies: u8,
  decap_udp: u8,
  netns_cookies: u8,
  connect_udp: u8,
  connect_tcp: u8,
  dsr: u8,
  source_check: u8,
  stray_service: u8,
  overlay: u8,
  host_policy: u8,
  untracked: u8,
  pod_to_host: u8,
  cluster_policy: u8,
  tunnel_class: u8,
  vteps: u8,
  ring_buffer: u8,
  tunnel_checksum: u8,
})

export type FrontendKey = ShapeType<typeof frontendKey>
export type Frontend = ShapeType<typeof frontend>
export type BackendKey = ShapeType<typeof backendKey>
export type Backend = ShapeType<typeof backend>
export type LiveKey = ShapeType<typeof liveKey>
export type Live = ShapeType<typeof live>
export type Maglev = ShapeType<typeof maglev>
export type RangeKey = ShapeType<typeof rangeKey>
export type NetKey = ShapeType<typeof netKey>
export type Route = ShapeType<typeof route>
export type AddrInfo = ShapeType<typeof addrInfo>
export type HostKey = ShapeType<typeof hostKey>
export type HostSets = ShapeType<typeof hostSets>
export type Iface = ShapeType<typeof iface>
export type CtKey = ShapeType<typeof ctKey>
export type CtValue = ShapeType<typeof ctValue>
export type FlowEvent = ShapeType<typeof flowEvent>
export type NodeState = ShapeType<typeof nodeState>
export type NodeCfg = ShapeType<typeof nodeCfg>
