// SPDX-License-Identifier: Apache-2.0
/** Runs packet cases through the loaded programs by BPF_PROG_TEST_RUN; used by vitest and inside kernel VMs.
 * Layer: testkit. */
import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import type { BpfProgram } from '#native'
import { ifindexOf, monotonicNs, netnsCookie, possibleCpus } from '#native'
import { enumValues } from '#agent/maps/btf.ts'
import { catalogue } from '#agent/maps/catalogue.ts'
import { flowKey } from '#agent/maps/flow-key.ts'
import type { NodeCfg } from '#agent/maps/shapes.ts'
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
  POD_TO_HOST_ACCEPT,
  RANGE_INSIDE,
  RANGE_TUNNEL_BACK,
  SOURCE_LOOSE,
  STRAY_REFUSE,
} from '#lib/base/bpf-constants.ts'
import { ANY_V4, ANY_V6, formatAddr, isV4, parseAddr } from '#lib/base/ip.ts'
import { packetText, readIp } from './packet-text.ts'
import { endpoint } from './packet.ts'
import type { Loaded } from './objects.ts'
import { TestMap, loadObject, program, sharedMaps } from './objects.ts'
import { impliedMark, markText, runMarked, takesArrivals, takesDevices, takesMarks } from './mark.ts'
import { NO_FAILSAFES, PacketFailsafes } from './failsafes.ts'
import { PacketPolicy } from './policy.ts'
import type { Policy } from '#lib/model/policy.ts'
import { KeptMap } from './kept-map.ts'
import type { BackendGiven, FlowWanted, Given, PacketCase, ProgramName, Step } from './case.ts'
import { addrInfo } from './addr-info.ts'
import { NAT_PORT, NODE_PORT, VNI, WEB, at, devices, families, namespaceCommands, namespaceSysctls } from './cluster.ts'

/** What the running kernel has; stubbed and switched off otherwise. */
export interface Features {
  readonly redirectPeer: boolean
  readonly redirectNeigh: boolean
  readonly coarseClock: boolean
  readonly jiffies: boolean
  readonly netnsCookies: boolean
}

export const HELPERS = { netnsCookies: 122, redirectNeigh: 152, redirectPeer: 155, coarseClock: 160, jiffies: 118 }
const ALL: readonly ProgramName[] = ['from_workload', 'to_workload', 'from_host', 'to_host', 'untracked']
const HOUR = 3_600_000
/** bits of others: no program of ours reads or changes them */
const FOREIGN = 0x00f0
/** one list, which the maps know again */
const NO_POLICIES: readonly Policy[] = []

export function testCfg(features: Features): NodeCfg {
  return {
    node_v4: parseAddr('192.168.50.1'),
    node_v6: parseAddr('fd00:50::1'),
    gateway_v4: parseAddr('169.254.1.1'),
    gateway_v6: parseAddr('fe80::1'),
    timeout_tcp_syn: 5_000, // short: a VM has not been up for long when a flow is made to look old
    timeout_tcp_open: HOUR,
    timeout_tcp_fin: HOUR,
    timeout_tcp_rst: 10_000,
    timeout_udp: HOUR,
    timeout_udp_stream: HOUR,
    timeout_icmp: HOUR,
    netns: netnsCookie(),
    fresh_jiffies: 250,
    tunnel_vni: VNI,
    tunnel_port: 4789,
    nat_port_min: NAT_PORT,
    nat_port_count: 1,
    redirect_peer: Number(features.redirectPeer),
    redirect_neigh: Number(features.redirectNeigh),
    coarse_clock: Number(features.coarseClock),
    jiffies: Number(features.jiffies),
    netns_cookies: Number(features.netnsCookies),
    connect_udp: 1,
    connect_tcp: 1,
    dsr: 1, // for clients that are not in RANGE_TUNNEL_BACK
    source_check: SOURCE_LOOSE,
    stray_service: STRAY_REFUSE,
    overlay: 1,
    host_policy: 1,
    untracked: 1,
    pod_to_host: POD_TO_HOST_ACCEPT,
  }
}

/** Makes the devices, routes and neighbours of cluster.ts in the current network namespace, which must be a scratch
 * one. */
export function setUpNamespace(): void {
  // another file of tests may have made them already
  const removed = Object.values(devices).map(({ name }) => `link del ${name}\n`)
  spawnSync('ip', ['-force', '-batch', '-'], { input: removed.join(''), stdio: ['pipe', 'ignore', 'ignore'] })
  // one process for all: in an emulated machine each start takes long
  execFileSync('ip', ['-batch', '-'], { input: `${namespaceCommands().join('\n')}\n`, stdio: ['pipe', 'ignore', 'inherit'] })
  for (const [path, value] of Object.entries(namespaceSysctls)) writeFileSync(`/proc/sys/${path}`, value)
}

export interface Passed {
  readonly action: string
  readonly out: Uint8Array
  readonly mark: number
}

export interface PacketRunner {
  /** undefined when all steps came out as they should, else what differed */
  run(test: PacketCase): string | undefined
  /** false: this kernel's test runs do not take what a step of it names, and {@link run} ends before that step */
  runsWhole(test: PacketCase): boolean
  /** what one packet alone comes to, in the cluster that the last case left */
  send(through: ProgramName, packet: Uint8Array): string
  /** the same with what comes out, and the mark on both sides */
  pass(through: ProgramName, packet: Uint8Array, mark: number): Passed
  close(): void
}

export async function packetRunner(features: Features, stubs: readonly number[] = [], knobs: Partial<NodeCfg> = {}): Promise<PacketRunner> {
  const cfg = { ...testCfg(features), ...knobs }
  const workload = await loadObject('workload', { cfg, stubHelpers: stubs })
  const share = sharedMaps(workload.object)
  const host = await loadObject('host', { cfg, stubHelpers: stubs, share })
  const xdp = await loadObject('xdp', { cfg, stubHelpers: stubs, share })
  const objectOf = (name: ProgramName) => (name === 'untracked' ? xdp : name.endsWith('workload') ? workload : host)
  const programs = new Map(ALL.map((name) => [name, program(objectOf(name), name)]))
  const maps = openMaps(workload)
  const takes = { mark: takesMarks(), arrived: takesArrivals(), device: takesDevices(ifindexOf(devices.underlay.name)) }
  const { mark: marks } = takes
  const runs = (step: Step) => (['mark', 'arrived', 'device'] as const).every((what) => step[what] === undefined || takes[what])
  return {
    runsWhole: (test) => test.steps.every(runs),
    run(test) {
      fill(maps, test.given)
      for (const step of test.steps) {
        if (!runs(step)) return undefined
        const wrong = runStep(step, { programs, maps, loaded: workload, marks, redirectPeer: features.redirectPeer })
        if (wrong !== undefined) return `${step.say} (${step.through}): ${wrong}`
      }
      return undefined
    },
    send(through, packet) {
      const run = programs.get(through)
      return run === undefined ? 'no such program' : actionText(through, run.testRun({ data: packet }).retval)
    },
    pass(through, packet, mark) {
      const run = programs.get(through)
      if (run === undefined) throw new Error('no such program')
      // before there is a packet, for XDP, there is no mark
      const came = through === 'untracked' ? { ...run.testRun({ data: packet }), mark } : runMarked(run, packet, { mark })
      return { action: actionText(through, came.retval), out: came.dataOut, mark: came.mark }
    },
    close() {
      for (const handle of [...programs.values(), ...share.values(), maps.policy, maps.failsafes]) handle.close()
      for (const { object } of [workload, host, xdp]) object.close()
    },
  }
}

/** Of a backend that no new flow may be given: its slot is another's by now, or none's. */
const NO_SLOT = 65_535

/** 0: none is named. */
function indexOf(device: string | undefined): number {
  return device === undefined ? 0 : ifindexOf(device)
}

function openMaps(loaded: Loaded) {
  const own = {
    frontends: new KeptMap(loaded, catalogue.np_frontends),
    backends: new KeptMap(loaded, catalogue.np_backends),
    addrs: new KeptMap(loaded, catalogue.np_addrs),
    ifaces: new KeptMap(loaded, catalogue.np_ifaces),
    live: new KeptMap(loaded, catalogue.np_live),
    maglev: new KeptMap(loaded, catalogue.np_maglev),
    ranges: new KeptMap(loaded, catalogue.np_ranges),
    routes: new KeptMap(loaded, catalogue.np_routes),
    state: new KeptMap(loaded, catalogue.np_state, { takeover_until: 0, epoch: 0 }),
  }
  const { addrs, state } = own
  return {
    own,
    // programs write these
    ct: new TestMap(loaded, catalogue.np_ct),
    frags: new TestMap(loaded, catalogue.np_frags),
    links: new TestMap(loaded, catalogue.np_links),
    affinity: new TestMap(loaded, catalogue.np_affinity),
    policy: new PacketPolicy(loaded, { addrs, state }),
    failsafes: new PacketFailsafes(loaded),
    counters: loaded.object.map('np_counters'),
  }
}

type Maps = ReturnType<typeof openMaps>
type OwnMaps = Maps['own']

/** Every case starts from the same small cluster and no flows. */
function fill({ own, ...maps }: Maps, given: Given): void {
  for (const map of [maps.ct, maps.frags, maps.links, maps.affinity]) map.empty()
  for (const map of [own.addrs, own.ifaces, own.routes]) map.clear()
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

function flush(own: OwnMaps): void {
  for (const map of Object.values(own)) map.flush()
}

/** The maps that say what the service is. */
function fillServices(own: OwnMaps, given: Given): void {
  for (const map of [own.frontends, own.backends, own.live, own.maglev, own.ranges]) map.clear()
  own.state.set(0, { takeover_until: given.takeover === true ? 1e12 : 0, epoch: 0 })
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
function listOf(v4: boolean): string {
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

type Actions = Readonly<Record<number, Step['action']>>
const TC_ACTIONS: Actions = { [-1]: 'pass', 0: 'pass', 2: 'drop', 7: 'redirect' }
const XDP_ACTIONS: Actions = { 1: 'drop', 2: 'pass' }

function actionText(through: ProgramName, retval: number): string {
  return (through === 'untracked' ? XDP_ACTIONS : TC_ACTIONS)[retval | 0] ?? `action ${retval}`
}

function runStep(
  step: Step,
  world: {
    readonly programs: ReadonlyMap<ProgramName, BpfProgram>
    readonly maps: Maps
    readonly loaded: Loaded
    readonly marks: boolean
    readonly redirectPeer: boolean
  },
): string | undefined {
  const run = world.programs.get(step.through)
  if (run === undefined) return 'no such program'
  const slot = step.reason === undefined ? undefined : enumValues(world.loaded.btf, 'drop').get(step.reason)
  if (step.reason !== undefined && slot === undefined) return `no drop reason ${step.reason}`
  const before = slot === undefined ? 0 : counter(world.maps, slot)
  change(world.maps, step)
  if (step.forget !== undefined) forget(world.maps.ct, step.forget)
  if (step.age !== undefined) makeOlder(world.maps, step.age)
  // before there is a packet, for XDP, there is no mark
  const { retval, dataOut, mark } =
    world.marks && step.through !== 'untracked'
      ? runMarked(run, step.packet, { mark: (step.mark ?? 0) | FOREIGN, arrived: indexOf(step.arrived), device: indexOf(step.device) })
      : { ...run.testRun({ data: step.packet }), mark: undefined }
  const action = actionText(step.through, retval)
  if (action !== step.action) return `${action} instead of ${step.action}: ${packetText(dataOut)}`
  const want = step.out === 'same' ? step.packet : step.out
  if (want !== undefined) {
    const from = step.macs === true ? 0 : 12
    if (Buffer.compare(dataOut.subarray(from), want.subarray(from)) !== 0)
      return `\n   got ${packetText(dataOut)}\n  want ${packetText(want)}`
  }
  const ours = step.marked ?? impliedMark(step, dataOut, world.redirectPeer)
  const implied = ours === undefined ? undefined : ours | FOREIGN
  if (mark !== undefined && implied !== undefined && mark !== implied)
    return `marked ${markText(mark)} instead of ${markText(implied)}: ${packetText(dataOut)}`
  if (slot !== undefined && counter(world.maps, slot) !== before + 1) return `counter ${step.reason ?? ''} did not go up by one`
  return firstWrong([judgeAffinity(world.maps, step, dataOut), ...(step.flows ?? []).map((wanted) => judgeFlow(world.maps, wanted))])
}

/** What is otherwise from this step on. */
function change({ own, policy }: Maps, step: Step): void {
  if (step.given !== undefined) fillServices(own, step.given)
  if (step.policies !== undefined) policy.change(step.policies, step.sameEpoch !== true)
  if (step.reused !== undefined)
    own.addrs.set(parseAddr(step.reused), addrInfo(ADDR_LOCAL_POD, { ifindex: ifindexOf(devices.secondPod.name) }))
  if (step.gone !== undefined) own.addrs.delete(parseAddr(step.gone))
  if (step.becomesNode !== undefined) own.addrs.set(parseAddr(step.becomesNode), addrInfo(ADDR_NODE))
  if (step.overlayBy !== undefined)
    for (const f of families)
      if (f.v4 !== step.overlayBy.includes(':'))
        own.routes.set({ prefix: 128, addr: parseAddr(f.overlayPod) }, { node: parseAddr(step.overlayBy) })
  flush(own)
}

function judgeAffinity({ affinity }: Maps, step: Step, out: Uint8Array): string | undefined {
  if (step.affinity === undefined) return undefined
  const { client, among } = step.affinity
  const row = affinity.get({ list: listOf(!client.includes(':')), client: parseAddr(client) })
  const named = row === undefined ? 'nothing' : at(formatAddr(row.addr), row.port)
  const { dst, l4 } = readIp(out)
  const sentTo = at(dst, Buffer.from(l4).readUInt16BE(2))
  return among.includes(named) && named === sentTo ? undefined : `np_affinity names ${named}, sent to ${sentTo}`
}

function firstWrong(judged: readonly (string | undefined)[]): string | undefined {
  return judged.find((text) => text !== undefined)
}

/** the programs' idea of fresh (bpf/include/conntrack/entry.h), at the slowest tick there is */
const FRESH_MS = 2_500

function makeOlder({ ct, links, affinity }: Maps, ms: number): void {
  for (const [key, value] of affinity.now()) affinity.set(key, { ...value, seen: Math.max(0, value.seen - ms) })
  for (const [key, value] of links.now()) links.set(key, { ...value, since: Math.max(0, value.since - ms) })
  for (const [key, value] of ct.now()) ct.set(key, { ...value, seen: Math.max(0, older(value.seen, ms)) })
}

/** Its low 24 bits are jiffies (bpf/include/conntrack/entry.h); the fastest tick there is takes a millisecond. */
function older(seen: number, ms: number): number {
  const ns = BigInt(Math.round(seen * 1e6))
  return Number(((ns - BigInt(ms) * 1_000_000n) & ~0xffffffn) | ((ns - BigInt(ms)) & 0xffffffn)) / 1e6
}

function forget(ct: Maps['ct'], flow: FlowWanted): void {
  const [key] = placeOf(flow)
  ct.delete(key)
}

/** Key and direction of the flow's packets. */
function placeOf({ from, to, proto, lane = 0 }: FlowWanted): ReturnType<typeof flowKey> {
  const [src, dst] = [endpoint(from), endpoint(to)]
  return flowKey({ src: src.addr, sport: src.port, dst: dst.addr, dport: dst.port }, { proto, lane })
}

function judgeFlow({ ct, policy }: Maps, wanted: FlowWanted): string | undefined {
  const title = `flow ${wanted.from} > ${wanted.to}`
  const [key] = placeOf(wanted)
  const value = ct.get(key)
  if (wanted.gone === true) return value === undefined ? undefined : `${title}: is there`
  if (value === undefined) return `${title}: there is none`
  const age = monotonicNs() / 1e6 - value.seen
  if (wanted.fresh !== undefined && age < FRESH_MS !== wanted.fresh) return `${title}: seen ${age.toFixed(0)} ms ago`
  const numbers = {
    egress: value.egress_rule,
    ingress: value.ingress_rule,
    stagedEgress: value.staged_egress_rule,
    stagedIngress: value.staged_ingress_rule,
  }
  return firstWrong(
    (['egress', 'ingress', 'stagedEgress', 'stagedIngress'] as const).map((side) => {
      const [want, got] = [wanted.rules?.[side], policy.ruleName(numbers[side])]
      return want === undefined || want === got ? undefined : `${title}: ${side} by "${got}" instead of "${want}"`
    }),
  )
}

function counter(maps: Maps, slot: number): number {
  const key = Buffer.alloc(4)
  key.writeUInt32LE(slot)
  const values = maps.counters.lookup(key)
  if (values === undefined) return 0
  let sum = 0
  for (let cpu = 0; cpu < possibleCpus(); cpu++) sum += Number(values.readBigUInt64LE(cpu * 8))
  return sum
}

/** The kernel's release, for reports. */
export function kernelRelease(): string {
  return readFileSync('/proc/sys/kernel/osrelease', 'utf8').trim()
}
