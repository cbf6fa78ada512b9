// SPDX-License-Identifier: Apache-2.0
/** Runs packet cases through the loaded programs by BPF_PROG_TEST_RUN; used by vitest and inside kernel VMs.
 * Layer: testkit. */
import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import type { BpfProgram } from '#native'
import { EventReader, ifindexOf, monotonicNs, netnsCookie, possibleCpus } from '#native'
import { EVENTS } from '#agent/dataplane/programs/objects.ts'
import { enumValues } from '#agent/maps/btf.ts'
import { decodeBytes } from '#agent/maps/byte-rows.ts'
import { bind } from '#agent/maps/codec.ts'
import { flowKey } from '#agent/maps/flow-key.ts'
import { structLayout } from '#agent/maps/layout.ts'
import { recordsOf } from '#agent/maps/records.ts'
import { flowEvent, type FlowEvent, type NodeCfg } from '#agent/maps/shapes.ts'
import { ADDR_LOCAL_POD, ADDR_NODE, POD_TO_HOST_ACCEPT, SOURCE_LOOSE, STRAY_REFUSE } from '#lib/base/bpf-constants.ts'
import { formatAddr, parseAddr } from '#lib/base/ip.ts'
import { packetText, readIp } from './packet-text.ts'
import { endpoint } from './packet.ts'
import type { Loaded } from './objects.ts'
import { loadObject, program, sharedMaps } from './objects.ts'
import { impliedMark, markText, runMarked, takesArrivals, takesDevices, takesMarks } from './mark.ts'
import { judgeStandby, standbyPrograms, type StandbyPrograms } from './standby.ts'
import type { FlowWanted, PacketCase, ProgramName, Step } from './case.ts'
import { addrInfo } from './addr-info.ts'
import { NAT_PORT, VNI, at, devices, families, namespaceCommands, namespaceSysctls } from './cluster.ts'
import { indexOf, openMaps, fill, flush, fillServices, listOf } from './case-maps.ts'
import type { Maps } from './case-maps.ts'

/** What the running kernel has; stubbed and switched off otherwise. */
export interface Features {
  readonly redirectPeer: boolean
  readonly redirectNeigh: boolean
  readonly coarseClock: boolean
  readonly jiffies: boolean
  readonly netnsCookies: boolean
  /** undefined: it has not */
  readonly decapUdp?: boolean
}

export const HELPERS = { netnsCookies: 122, redirectNeigh: 152, redirectPeer: 155, coarseClock: 160, jiffies: 118, ringBuffer: 130 }
const ALL: readonly ProgramName[] = ['from_workload', 'to_workload', 'from_host', 'to_host', 'untracked']
const HOUR = 3_600_000
/** bits of others: no program of ours reads or changes them */
const FOREIGN = 0x00f0

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
    decap_udp: Number(features.decapUdp === true),
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
    cluster_policy: 1,
    recent_mask: 2047,
    vteps: 1,
    ring_buffer: 0,
    tunnel_class: 0x03,
    tunnel_checksum: 0,
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
  /** the same with what comes out, and the mark on both sides; `arrived` as a step's */
  pass(through: ProgramName, packet: Uint8Array, came?: Pick<Step, 'mark' | 'arrived'>): Passed
  /** what the programs of the node tell of flows, from now on and as it comes; to the last who listens */
  listen(onEvent: (event: FlowEvent) => void): void
  /** of a rule by its number; '' for none */
  ruleName(rule: number): string
  /** of a drop reason, or another counter */
  counted(name: string): number
  /** a program of hooks of the host devices and pods, to be attached; who asks for it closes it */
  handle(name: string): BpfProgram
  close(): void
}

export async function packetRunner(features: Features, stubs: readonly number[] = [], knobs: Partial<NodeCfg> = {}): Promise<PacketRunner> {
  const cfg = { ...testCfg(features), ...knobs }
  const tc = await loadObject('tc', { cfg, stubHelpers: stubs })
  const share = sharedMaps(tc.object)
  const xdp = await loadObject('xdp', { cfg, stubHelpers: stubs, share })
  const programs = new Map(ALL.map((name) => [name, program(name === 'untracked' ? xdp : tc, name)]))
  const standbys = standbyPrograms(tc)
  const maps = openMaps(tc)
  const takes = { mark: takesMarks(), arrived: takesArrivals(), device: takesDevices(ifindexOf(devices.underlay.name)) }
  const { mark: marks } = takes
  const readers: { close(): void }[] = []
  const runs = (step: Step) => (['mark', 'arrived', 'device'] as const).every((what) => step[what] === undefined || takes[what])
  return {
    runsWhole: (test) => test.steps.every(runs),
    run(test) {
      fill(maps, test.given)
      for (const step of test.steps) {
        if (!runs(step)) return undefined
        const wrong = runStep(step, { programs, standbys, maps, loaded: tc, marks, redirectPeer: features.redirectPeer })
        if (wrong !== undefined) return `${step.say} (${step.through}): ${wrong}`
      }
      return undefined
    },
    send(through, packet) {
      const run = programs.get(through)
      return run === undefined ? 'no such program' : actionText(through, run.testRun({ data: packet }).retval)
    },
    pass(through, packet, { mark = 0, arrived } = {}) {
      const run = programs.get(through)
      if (run === undefined) throw new Error('no such program')
      // before there is a packet, for XDP, there is no mark
      const came =
        through === 'untracked' ? { ...run.testRun({ data: packet }), mark } : runMarked(run, packet, { mark, arrived: indexOf(arrived) })
      return { action: actionText(through, came.retval), out: came.dataOut, mark: came.mark }
    },
    listen(onEvent) {
      const codec = bind(flowEvent, structLayout(tc.btf, 'flow_event'))
      for (const reader of readers.splice(0)) reader.close()
      const told = tc.object.map(EVENTS)
      const reader = EventReader.open(told, (records) => {
        for (const record of recordsOf(records)) onEvent(decodeBytes(codec, record.subarray(0, codec.size)))
      })
      readers.push(reader, told)
    },
    ruleName: (rule) => maps.policy.ruleName(rule),
    counted(name) {
      const slot = slotOf(tc, name)
      if (slot === undefined) throw new Error(`no counter ${name}`)
      return counter(maps, slot)
    },
    handle: (name) => program(tc, name),
    close() {
      for (const reader of readers) reader.close()
      for (const handle of [...programs.values(), ...standbys.values(), ...share.values(), maps.policy, maps.failsafes]) handle.close()
      for (const { object } of [tc, xdp]) object.close()
    },
  }
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
    readonly standbys: StandbyPrograms
    readonly maps: Maps
    readonly loaded: Loaded
    readonly marks: boolean
    readonly redirectPeer: boolean
  },
): string | undefined {
  const run = world.programs.get(step.through)
  if (run === undefined) return 'no such program'
  const slot = step.reason === undefined ? undefined : slotOf(world.loaded, step.reason)
  if (step.reason !== undefined && slot === undefined) return `no drop reason ${step.reason}`
  const before = slot === undefined ? 0 : counter(world.maps, slot)
  change(world.maps, step)
  if (step.forget !== undefined) forget(world.maps.ct, step.forget)
  if (step.age !== undefined) makeOlder(world.maps, step.age)
  const came = { mark: (step.mark ?? 0) | FOREIGN, arrived: indexOf(step.arrived), device: indexOf(step.device) }
  // before there is a packet, for XDP, there is no mark
  const marked = world.marks && step.through !== 'untracked' ? runMarked(run, step.packet, came) : undefined
  const { retval, dataOut } = marked ?? run.testRun({ data: step.packet })
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
  if (marked !== undefined && implied !== undefined && marked.mark !== implied)
    return `marked ${markText(marked.mark)} instead of ${markText(implied)}: ${packetText(dataOut)}`
  if (slot !== undefined && counter(world.maps, slot) !== before + 1) return `counter ${step.reason ?? ''} did not go up by one`
  const standby = marked && judgeStandby(world.standbys.get(step.through), came, marked)
  return firstWrong([
    standby,
    judgeAffinity(world.maps, step, dataOut),
    ...(step.flows ?? []).map((wanted) => judgeFlow(world.maps, wanted)),
  ])
}

/** Of a drop reason, or of a counter, which follow them. */
function slotOf({ btf }: Loaded, name: string): number | undefined {
  const [drops, counters] = [enumValues(btf, 'drop'), enumValues(btf, 'counter')]
  const [first, counter] = [drops.get('DROP_MAX'), counters.get(name)]
  return drops.get(name) ?? (first === undefined || counter === undefined ? undefined : first + counter)
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

function makeOlder({ ct, links, paths, affinity }: Maps, ms: number): void {
  for (const [key, value] of affinity.now()) affinity.set(key, { ...value, seen: Math.max(0, value.seen - ms) })
  for (const [key, value] of links.now()) links.set(key, { ...value, since: Math.max(0, value.since - ms) })
  for (const [key, value] of paths.now()) paths.set(key, { ...value, until: Math.max(0, value.until - ms) })
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
  const [key, direction] = placeOf(wanted)
  const value = ct.get(key)
  if (wanted.gone === true) return value === undefined ? undefined : `${title}: is there`
  if (value === undefined) return `${title}: there is none`
  const age = monotonicNs() / 1e6 - value.seen
  if (wanted.fresh !== undefined && age < FRESH_MS !== wanted.fresh) return `${title}: seen ${age.toFixed(0)} ms ago`
  const { packets, bytes } = value.leg[direction] ?? { packets: 0, bytes: 0 }
  if ((wanted.packets ?? packets) !== packets || (wanted.bytes ?? bytes) !== bytes) return `${title}: ${packets} packets, ${bytes} bytes`
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
