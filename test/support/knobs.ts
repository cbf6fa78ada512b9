// SPDX-License-Identifier: Apache-2.0
/** Settings of programs and sizes of maps, small, for tests that load them. Layer: test. */
import { SOURCE_LOOSE, STRAY_DROP } from '#lib/base/bpf-constants.ts'
import { ANY_V6, parseAddr, parsePort } from '#lib/base/ip.ts'
import type { Knobs, MapSizes } from '#agent/compile/desired.ts'

export const SIZES: MapSizes = { conntrack: 2000, frontends: 100, backends: 200, affinity: 100, addrs: 300, live: 200 }
export const KNOBS: Knobs = {
  nodeV4: parseAddr('192.0.2.1'),
  nodeV6: ANY_V6,
  tunnelVni: 77,
  tunnelPort: parsePort(4789),
  tunnelDscp: false,
  tunnelChecksum: false,
  connectTcp: true,
  connectUdp: false,
  natPorts: { from: parsePort(20_000), to: parsePort(29_999) },
  dsr: false,
  sourceCheck: SOURCE_LOOSE,
  strayService: STRAY_DROP,
  overlay: false,
  vteps: false,
  hostPolicy: false,
  untracked: false,
  clusterPolicy: false,
  podToHost: 0,
  timeouts: { tcpSyn: 1000, tcpOpen: 3_600_000, tcpFin: 2000, tcpRst: 3000, udp: 4000, udpStream: 5000, icmp: 6000 },
}
