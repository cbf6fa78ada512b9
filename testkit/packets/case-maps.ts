// SPDX-License-Identifier: Apache-2.0
/** The maps of a packet case: the same small cluster each time, and what the case adds. Layer: testkit. */
import { ifindexOf } from '#native'
import { catalogue } from '#agent/maps/catalogue.ts'
import { flowKey } from '#agent/maps/flow-key.ts'
import {
  ADDR_EXTERNAL,
  ADDR_LOCAL_POD,
  ADDR_MASQUERADE,
  ADDR_NODE,
  ADDR_NODE_PORTS,
  ADDR_ROUTED,
  ADDR_SELF,
  ADDR_SERVICE,
  LIVE_CHOSEN,
  MAGLEV_SIZE,
  OWN_SLOTS,
  RANGE_INSIDE,
  RANGE_NODE_PORTS,
  RANGE_OWN,
  RANGE_TUNNEL_BACK,
} from '#lib/base/bpf-constants.ts'
import { ANY_V4, ANY_V6, isV4, parseAddr, parseCidr } from '#lib/base/ip.ts'
import { endpoint } from './packet.ts'
import type { Loaded } from './objects.ts'
import { TestMap } from './objects.ts'
import { NO_FAILSAFES, PacketFailsafes } from './failsafes.ts'
import { PacketPolicy } from './policy.ts'
import type { Policy } from '#lib/model/policy.ts'
import { KeptMap } from './kept-map.ts'
import type { BackendGiven, Given } from './case.ts'
import { addrInfo } from './addr-info.ts'
import { NODE_PORT, WEB, at, devices, families, ownPrefixes } from './cluster.ts'
/** one list, which the maps know again */
const NO_POLICIES: readonly Policy[] = []

/** Of a backend that no new flow may be given: its slot is another's by now, or none's. */
const NO_SLOT = 65_535

/** 0: none is named. */
export function indexOf(device: string | undefined): number {
  return device === undefined ? 0 : ifindexOf(device)
}

export function openMaps(loaded: Loaded) {
  const own = {
    frontends: new KeptMap(loaded, catalogue.np_frontends),
    backends: new KeptMap(loaded, catalogue.np_backends),
    addrs: new KeptMap(loaded, catalogue.np_addrs),
    ifaces: new KeptMap(loaded, catalogue.np_ifaces),
    live: new KeptMap(loaded, catalogue.np_live),
    maglev: new KeptMap(loaded, catalogue.np_maglev),
    ranges: new KeptMap(loaded, catalogue.np_ranges),
    older: new KeptMap(loaded, catalogue.np_older),
    routes: new KeptMap(loaded, catalogue.np_routes),
    vteps: new KeptMap(loaded, catalogue.np_vteps),
    state: new KeptMap(loaded, catalogue.np_state, { takeover_until: 0, epoch: 0, own_prefixes: 0, accounts: 0, tunnel_device: 0 }),
  }
  const { addrs, state } = own
  return {
    own,
    // programs write these
    ct: new TestMap(loaded, catalogue.np_ct),
    frags: new TestMap(loaded, catalogue.np_frags),
    links: new TestMap(loaded, catalogue.np_links),
    paths: new TestMap(loaded, catalogue.np_paths),
    affinity: new TestMap(loaded, catalogue.np_affinity),
    policy: new PacketPolicy(loaded, { addrs, state }),
    failsafes: new PacketFailsafes(loaded),
    counters: loaded.object.map('np_counters'),
    held: loaded.object.map('np_held'),
  }
}

export type Maps = ReturnType<typeof openMaps>
type OwnMaps = Maps['own']

/** Every case starts from the same small cluster and no flows. */
export function fill({ own, ...maps }: Maps, given: Given): void {
  for (const map of [maps.ct, maps.frags, maps.links, maps.paths, maps.affinity]) map.empty()
  for (let key = maps.held.nextKey(undefined); key !== undefined; key = maps.held.nextKey(undefined)) maps.held.delete(key)
  for (const map of [own.addrs, own.ifaces, own.older, own.routes, own.vteps]) map.clear()
  for (const { from, to, over } of given.older ?? []) {
    const [{ addr: src, port: sport }, { addr: dst, port: dport }] = [endpoint(from), endpoint(to)]
    const [key, opener] = flowKey({ src, sport, dst, dport }, { proto: 6, lane: 0 })
    own.older.set(key, { until: over === true ? 0 : 1e12, opener })
  }
  for (const [addr, mac] of Object.entries(given.vteps ?? {})) own.vteps.set(parseAddr(addr), { mac })
  for (const addr of given.external ?? []) own.addrs.set(parseAddr(addr), addrInfo(0, { flags: ADDR_EXTERNAL }))
  const lo = ifindexOf('lo')
  for (const device of [devices.pod, devices.secondPod, devices.underlay]) {
    own.ifaces.set(ifindexOf(device.name), { mtu: device.mtu, kind: device === devices.underlay ? 2 : 1, mac: device.mac })
  }
  // test runs without an interface in their context happen on lo: a pod's veth, with a larger MTU than the underlay
  own.ifaces.set(lo, { mtu: 2000, kind: 1, mac: devices.pod.mac })
  for (const f of families) {
    // a pod sends from the device that test runs happen on
    for (const pod of [f.pod, f.secondPod]) own.addrs.set(parseAddr(pod), addrInfo(ADDR_LOCAL_POD, { ifindex: lo }))
    own.addrs.set(parseAddr(f.maskedPod), addrInfo(ADDR_LOCAL_POD, { flags: ADDR_MASQUERADE, ifindex: lo }))
    own.addrs.set(parseAddr(f.routedPod), addrInfo(ADDR_LOCAL_POD, { flags: ADDR_ROUTED, ifindex: lo }))
    own.addrs.set(parseAddr(f.elsewherePod), addrInfo(ADDR_LOCAL_POD, { ifindex: ifindexOf(devices.pod.name) }))
    for (const addr of [f.node, f.loopback]) own.addrs.set(parseAddr(addr), addrInfo(ADDR_SELF, { flags: ADDR_NODE_PORTS }))
    own.addrs.set(parseAddr(f.quietOwn), addrInfo(ADDR_SELF))
    for (const node of [f.otherNode, f.thirdNode, ...f.alikeNodes]) own.addrs.set(parseAddr(node), addrInfo(ADDR_NODE))
    own.addrs.set(parseAddr(f.bareVip), addrInfo(ADDR_SERVICE))
    own.routes.set({ prefix: 128, addr: parseAddr(f.overlayPod) }, { node: parseAddr(f.otherNode) })
  }
  fillServices(own, given)
  maps.policy.start(given.policies ?? NO_POLICIES)
  maps.failsafes.start(given.failsafes ?? NO_FAILSAFES)
  flush(own)
}

export function flush(own: OwnMaps): void {
  for (const map of Object.values(own)) map.flush()
}

/** The maps that say what the service is. */
export function fillServices(own: OwnMaps, given: Given): void {
  for (const map of [own.frontends, own.backends, own.live, own.maglev, own.ranges]) map.clear()
  own.state.set(0, {
    takeover_until: given.takeover === true ? 1e12 : 0,
    epoch: 0,
    own_prefixes: ownPrefixes.length,
    accounts: given.uncounted === true ? 0 : 1,
    tunnel_device: 0,
  })
  for (const { addr, bits } of ownPrefixes.map(parseCidr))
    for (const set of [RANGE_OWN, RANGE_NODE_PORTS].map(rangeSet))
      own.ranges.set({ prefix: 64 + bits + (isV4(addr) ? 96 : 0), set, addr }, 0)
  for (const f of families) {
    const inside = (addr: string): void => own.ranges.set({ prefix: 64 + 128, set: rangeSet(RANGE_INSIDE), addr: parseAddr(addr) }, 0)
    for (const addr of [f.pod, f.secondPod, f.maskedPod, f.remotePod, f.overlayPod]) inside(addr)
    own.ranges.set({ prefix: 64 + 128, set: rangeSet(RANGE_TUNNEL_BACK), addr: parseAddr(f.client) }, 0)
    fillService(own, { given, vip: at(f.vip, 80), v4: f.v4 })
  }
}

function rangeSet(number: number): string {
  return number.toString(16).padStart(16, '0')
}

/** The service has backends of the case's own family only: the frontends of the other family find none. */
function fillService(maps: OwnMaps, options: { readonly given: Given; readonly vip: string; readonly v4: boolean }): void {
  const { given, vip, v4 } = options
  const list = listOf(v4)
  const local = list.replace(/^0/, '1')
  const count = fillList(maps, list, ofFamily(given.backends, v4))
  const localCount = fillList(maps, local, ofFamily(given.outside, v4))
  const own = [...(given.backends ?? []), ...(given.alive ?? [])].filter(({ node }) => node === undefined)
  for (const [index, { addr, port }] of ofFamily(own, v4).entries())
    maps.backends.set({ list, slot: OWN_SLOTS + index }, { addr: parseAddr(addr), node: ANY_V6, port, flags: 0 })
  for (const { addr, port } of ofFamily(given.alive, v4)) maps.live.set({ list, addr: parseAddr(addr), port }, { flags: 0, slot: NO_SLOT })
  for (const source of given.sources ?? []) {
    if (source.includes(':') !== v4) maps.ranges.set({ prefix: 64 + 128, set: list, addr: parseAddr(source) }, 0)
  }
  const slots = given.maglev
  if (slots !== undefined)
    maps.maglev.set(list, { slot: Uint16Array.from({ length: MAGLEV_SIZE }, (_, index) => slots[index % slots.length] ?? 0) })
  for (const proto of [6, 17]) {
    const inside = { list, count }
    const outside = given.outside === undefined ? inside : { list: local, count: localCount }
    const value = { inside, outside, flags: given.flags ?? 0, affinity: given.affinity ?? 0 }
    maps.frontends.set({ addr: endpoint(vip).addr, port: 80, proto }, value)
    maps.frontends.set({ addr: v4 ? ANY_V4 : ANY_V6, port: NODE_PORT, proto }, value)
    for (const { addr, port } of (given.frontends ?? []).map(endpoint))
      if (isV4(addr) === v4) maps.frontends.set({ addr, port, proto }, value)
  }
}

/** The service's backends of the family. */
export function listOf(v4: boolean): string {
  return v4 ? WEB : WEB.replace(/a$/, 'b')
}

function ofFamily(backends: readonly BackendGiven[] | undefined, v4: boolean): readonly BackendGiven[] {
  return (backends ?? []).filter((backend) => backend.addr.includes(':') !== v4)
}

/** Returns how many there are. */
function fillList(maps: OwnMaps, list: string, backends: readonly BackendGiven[]): number {
  for (const [slot, backend] of backends.entries()) {
    const [addr, node] = [parseAddr(backend.addr), backend.node === undefined ? ANY_V6 : parseAddr(backend.node)]
    maps.backends.set({ list, slot }, { addr, node, port: backend.port, flags: 0 })
    maps.live.set({ list, addr, port: backend.port }, { flags: LIVE_CHOSEN, slot })
  }
  return backends.length
}
