// SPDX-License-Identifier: Apache-2.0
/** The structs of maps.h and config.h as TypeScript sees them. Layer: agent/maps. */
import type { ShapeType } from './kinds.ts'
import { addr, arrayOf, be16, be32, id64, mac, ns, shape, u16, u32, u8 } from './kinds.ts'

export const frontendKey = shape('frontend_key', { addr, port: be16, proto: u8 })
export const frontend = shape('frontend', { service: id64, count: u32, flags: u32 })

export const backendKey = shape('backend_key', { service: id64, slot: u32 })
export const backend = shape('backend', { addr, node: addr, port: be16, flags: u16 })

export const addrInfo = shape('addr_info', { kind: u32, ifindex: u32 })

export const iface = shape('iface', { mtu: u32, kind: u16, mac })

export const ctKey = shape('ct_key', { lo: addr, hi: addr, lo_port: be16, hi_port: be16, proto: u8 })
export const ctTuple = shape('ct_tuple', { src: addr, dst: addr, sport: be16, dport: be16 })
export const ctLeg = shape('ct_leg', { ifindex: u32, mtu: u16, flags: u16, ack: u32, window: u16, wscale: u8 })
export const ctValue = shape('ct_value', { seen: ns, out: ctTuple, state: u8, via: addr, leg: arrayOf(ctLeg, 2), fresh: u32 })

export const fragKey = shape('frag_key', { src: addr, dst: addr, id: be32, proto: u8 })
export const frag = shape('frag', { sport: be16, dport: be16 })

/** The cookie is an id, not a count: the kernel hands out some from 2^64 downwards. */
export const socketKey = shape('socket_key', { cookie: id64, backend: addr, port: be16, proto: u8 })
export const socketService = shape('socket_service', { addr, port: be16 })

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
  tunnel_vni: u32,
  tunnel_port: be16,
  redirect_peer: u8,
  redirect_neigh: u8,
  coarse_clock: u8,
  jiffies: u8,
  connect_udp: u8,
  connect_tcp: u8,
})

export type FrontendKey = ShapeType<typeof frontendKey>
export type Frontend = ShapeType<typeof frontend>
export type BackendKey = ShapeType<typeof backendKey>
export type Backend = ShapeType<typeof backend>
export type AddrInfo = ShapeType<typeof addrInfo>
export type Iface = ShapeType<typeof iface>
export type CtKey = ShapeType<typeof ctKey>
export type CtValue = ShapeType<typeof ctValue>
export type NodeCfg = ShapeType<typeof nodeCfg>
