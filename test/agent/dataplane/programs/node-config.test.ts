// SPDX-License-Identifier: Apache-2.0
/** Knobs as the programs get them. Layer: test. */
import { expect, test } from 'vitest'
import { POD_TO_HOST_DROP, SOURCE_STRICT, STRAY_REFUSE } from '#lib/base/bpf-constants.ts'
import { ANY_V4, ANY_V6, parseAddr, parsePort } from '#lib/base/ip.ts'
import type { Knobs, MapSizes } from '#agent/compile/desired.ts'
import type { Features } from '#agent/dataplane/programs/kernel-features.ts'
import { nodeConfig } from '#agent/dataplane/programs/node-config.ts'

const knobs: Knobs = {
  nodeV4: ANY_V4,
  nodeV6: parseAddr('2001:db8::1'),
  tunnelVni: 5,
  tunnelPort: parsePort(4790),
  tunnelDscp: false,
  tunnelChecksum: false,
  connectTcp: false,
  connectUdp: true,
  natPorts: { from: parsePort(20_000), to: parsePort(29_999) },
  dsr: true,
  sourceCheck: SOURCE_STRICT,
  strayService: STRAY_REFUSE,
  overlay: true,
  vteps: true,
  hostPolicy: true,
  untracked: false,
  clusterPolicy: true,
  podToHost: POD_TO_HOST_DROP,
  timeouts: { tcpSyn: 1, tcpOpen: 2, tcpFin: 3, tcpRst: 4, udp: 5, udpStream: 6, icmp: 7 },
}
const mapSizes: MapSizes = { conntrack: 10_000, frontends: 1, backends: 1, live: 1, addrs: 1, affinity: 1 }
const features: Features = {
  redirect_peer: 'yes',
  redirect_neigh: 'no',
  ktime_get_coarse_ns: 'unknown',
  jiffies64: 'no',
  global_functions: 'no',
  recvmsg4: 'yes',
  recvmsg6: 'yes',
  getpeername4: 'yes',
  getpeername6: 'yes',
  decap_l4_udp: 'no',
  tunnel_source: 'yes',
  ring_buffer: 'yes',
  hz: 100,
  get_netns_cookie: 'yes',
  netns: '00000000000000ab',
}

test('no address is all zero in either family; only what the kernel surely has is switched on', () => {
  expect(nodeConfig({ knobs, mapSizes }, features)).toEqual({
    node_v4: ANY_V6,
    node_v6: parseAddr('2001:db8::1'),
    gateway_v4: parseAddr('169.254.1.1'),
    gateway_v6: parseAddr('fe80::1'),
    timeout_tcp_syn: 1,
    timeout_tcp_open: 2,
    timeout_tcp_fin: 3,
    timeout_tcp_rst: 4,
    timeout_udp: 5,
    timeout_udp_stream: 6,
    timeout_icmp: 7,
    netns: '00000000000000ab',
    fresh_jiffies: 75,
    tunnel_vni: 5,
    tunnel_port: 4790,
    nat_port_min: 20_000,
    nat_port_count: 10_000,
    redirect_peer: 1,
    redirect_neigh: 0,
    coarse_clock: 0,
    decap_udp: 0,
    jiffies: 0,
    netns_cookies: 1,
    connect_udp: 1,
    connect_tcp: 0,
    dsr: 1,
    source_check: 2,
    stray_service: 2,
    overlay: 1,
    vteps: 1,
    ring_buffer: 1,
    host_policy: 1,
    untracked: 0,
    cluster_policy: 1,
    pod_to_host: 1,
    recent_mask: 4095,
    tunnel_class: 0x03,
    tunnel_checksum: 0,
  })
})

test.each([
  [1, 63],
  [4096, 2047],
  [512_000, 65_535],
  [4_096_000, 65_535],
])('a flow table of %d entries remembers its last flows in a ring of half of it, within bounds', (conntrack, mask) => {
  expect(nodeConfig({ knobs, mapSizes: { ...mapSizes, conntrack } }, features).recent_mask).toBe(mask)
})

test("the tunnel's header has the inner packet's ECN, and by setting its DSCP", () => {
  expect(nodeConfig({ knobs: { ...knobs, tunnelDscp: true }, mapSizes }, features).tunnel_class).toBe(0xff)
})

test('the tunnel has checksums by setting, where the kernel can', () => {
  const checksum = (tunnelChecksum: boolean, kernel: Partial<Features>): number =>
    nodeConfig({ knobs: { ...knobs, tunnelChecksum }, mapSizes }, { ...features, ...kernel }).tunnel_checksum
  const able = { tunnel_source: 'yes', global_functions: 'yes' } as const
  expect([checksum(true, able), checksum(false, able)]).toEqual([1, 0])
  expect([checksum(true, { ...able, tunnel_source: 'no' }), checksum(true, { ...able, global_functions: 'no' })]).toEqual([0, 0])
})
