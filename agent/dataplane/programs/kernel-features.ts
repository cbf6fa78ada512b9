// SPDX-License-Identifier: Apache-2.0
/** What this kernel can do, found out by loading tiny programs: versions tell little where vendors backport.
 * Layer: agent/dataplane. */
import { BpfMap, BpfProgram, netnsCookie, ticksPerSecond } from '#native'
import { errorCode } from '#lib/base/errors.ts'

/** `unknown`: even a program without the feature would not load, so its refusal says nothing. */
export type Answer = 'yes' | 'no' | 'unknown'

const HELPERS = { jiffies64: 118, get_netns_cookie: 122, redirect_neigh: 152, redirect_peer: 155, ktime_get_coarse_ns: 160 } as const
const ATTACH_TYPES = { recvmsg4: 19, recvmsg6: 20, getpeername4: 29, getpeername6: 30 } as const

export type HelperFeature = keyof typeof HELPERS
export type HookFeature = keyof typeof ATTACH_TYPES
export type Features = Readonly<Record<HelperFeature | HookFeature, Answer>> & {
  /** functions that are verified by themselves: since 5.6, where the kernel has type information of its own */
  readonly global_functions: Answer
  /** a flag by which a packet without its tunnel header is no tunnelled one any more: since 7.3 */
  readonly decap_l4_udp: Answer
  /** a program names the source of a tunnel's packets, which the kernel's device makes: since 6.0 */
  readonly tunnel_source: Answer
  /** of events, in the order in which they came: since 5.8 */
  readonly ring_buffer: Answer
  /** how often a second its jiffies move */
  readonly hz: number
  /** cookie of the agent's network namespace; zeros where the kernel tells none */
  readonly netns: string
}

interface Probe {
  readonly type: number
  readonly instructions: Uint8Array
  readonly expectedAttachType?: number
  readonly globalAt?: number
  /** what it is run on; undefined: it is loaded only */
  readonly packet?: Uint8Array
}

/** Loads, runs and lets go; returns what the program does, 0 where it is not run. Throws an error with the errno's name
 * as `code`. */
export type TryProgram = (probe: Probe) => number

const RINGBUF_OUTPUT = 130
export const RING_BUFFER = 27
const SCHED_CLS = 3
const CGROUP_SOCK_ADDR = 18
const CONNECT4 = 10

const SET_TUNNEL_KEY = 21
/** Of struct bpf_tunnel_key. */
const KEY_BYTES = { before: 28, withSource: 44 }

const ADJUST_ROOM = 50
const BPF_ADJ_ROOM_MAC = 1
const FIXED_GSO = 1
/** as the programs use it (bpf/include/base/compat.h) */
export const DECAP_L4_UDP = 0x400
/** IPv4, UDP, VXLAN, Ethernet */
const TUNNEL_BYTES = 20 + 8 + 8 + 14
/** In Ethernet, an empty packet of TCP in a tunnel: only types, lengths and protocols are there. */
const TUNNELLED = tunnelled()

/** Asks the kernel once; the answers hold until it is rebooted, so keep them. Takes some ms. */
export function probeFeatures(attempt: TryProgram = tryProgram, machine = thisMachine): Features {
  const tc = loads(attempt, { type: SCHED_CLS, instructions: returning(0) })
  const cgroup = loads(attempt, { type: CGROUP_SOCK_ADDR, instructions: returning(1), expectedAttachType: CONNECT4 })
  const helper = (name: HelperFeature): Answer =>
    answer(tc, () => loads(attempt, { type: SCHED_CLS, instructions: calling(HELPERS[name]) }))
  const cgroupHelper = (name: HelperFeature): Answer =>
    answer(cgroup, () => loads(attempt, { type: CGROUP_SOCK_ADDR, instructions: calling(HELPERS[name]), expectedAttachType: CONNECT4 }))
  const hook = (name: HookFeature): Answer =>
    answer(cgroup, () => loads(attempt, { type: CGROUP_SOCK_ADDR, instructions: returning(1), expectedAttachType: ATTACH_TYPES[name] }))
  const shrinks = (flags: number): boolean | undefined =>
    loads(attempt, { type: SCHED_CLS, instructions: shrinking(flags), packet: TUNNELLED })
  const setsKey = (bytes: number): boolean | undefined =>
    loads(attempt, { type: SCHED_CLS, instructions: settingKey(bytes), packet: TUNNELLED })
  return {
    jiffies64: helper('jiffies64'),
    get_netns_cookie: cgroupHelper('get_netns_cookie'),
    redirect_neigh: helper('redirect_neigh'),
    redirect_peer: helper('redirect_peer'),
    ktime_get_coarse_ns: helper('ktime_get_coarse_ns'),
    global_functions: answer(tc, () => loads(attempt, { type: SCHED_CLS, instructions: callingOwn(), globalAt: OWN_AT })),
    decap_l4_udp: answer(shrinks(FIXED_GSO), () => shrinks(FIXED_GSO | DECAP_L4_UDP)),
    tunnel_source: answer(setsKey(KEY_BYTES.before), () => setsKey(KEY_BYTES.withSource)),
    recvmsg4: hook('recvmsg4'),
    recvmsg6: hook('recvmsg6'),
    getpeername4: hook('getpeername4'),
    getpeername6: hook('getpeername6'),
    ring_buffer: machine.makesRing(),
    hz: machine.hz(),
    netns: machine.netns(),
  }
}

/** What no program tells. */
const thisMachine = { makesRing, hz: ticksPerSecond, netns: netnsCookie }

/** For any size of pages. */
const RING_BYTES = 65_536

function makesRing(): Answer {
  try {
    BpfMap.create({ name: 'np_ring', type: RING_BUFFER, keySize: 0, valueSize: 0, maxEntries: RING_BYTES }).close()
    return 'yes'
  } catch (thrown) {
    return errorCode(thrown) === 'EINVAL' ? 'no' : 'unknown'
  }
}

/** Numbers of the helpers that programs may not call here; one that could not be told counts as missing. */
export function missingHelpers(features: Features): number[] {
  const all = [...Object.entries(HELPERS), ['ring_buffer', RINGBUF_OUTPUT] as const]
  return all.flatMap(([name, number]) => (isYes(features, name) ? [] : [number]))
}

/** Names of the programs that would be refused here for their hook alone. */
export function missingHooks(features: Features): Set<string> {
  return new Set(Object.keys(ATTACH_TYPES).filter((name) => !isYes(features, name)))
}

/** Why packets cannot enter the tunnel by the kernel's device; undefined: they can. */
export function whyNoTunnelChecksums(features: Features): string | undefined {
  if (isYes(features, 'tunnel_source') && isYes(features, 'global_functions')) return undefined
  return "this kernel lets no program name the source of a tunnel's packets (Linux 6.0)"
}

function isYes(features: Readonly<Record<string, unknown>>, name: string): boolean {
  return features[name] === 'yes'
}

function answer(control: boolean | undefined, probe: () => boolean | undefined): Answer {
  const loaded = control === true ? probe() : undefined
  return loaded === undefined ? 'unknown' : loaded ? 'yes' : 'no'
}

/** False when the kernel calls the program invalid, or what it does; undefined when it fails for a reason that has
 * nothing to do with it. */
function loads(attempt: TryProgram, probe: Probe): boolean | undefined {
  try {
    return attempt(probe) === 0
  } catch (thrown) {
    return errorCode(thrown) === 'EINVAL' ? false : undefined
  }
}

function tryProgram({ packet, ...probe }: Probe): number {
  const program = BpfProgram.load({ ...probe, license: 'GPL' })
  try {
    return packet === undefined ? 0 : program.testRun({ data: packet }).retval
  } finally {
    program.close()
  }
}

/** `r0 = value; exit` */
function returning(value: number): Uint8Array {
  return program([instruction(0xb7, 0, value), instruction(0x95, 0, 0)])
}

/** A call with four zero arguments, which every helper here takes, and its result thrown away. */
function calling(helper: number): Uint8Array {
  const zeros = [1, 2, 3, 4].map((register) => instruction(0xb7, register, 0))
  return program([...zeros, instruction(0x85, 0, helper), instruction(0xb7, 0, 0), instruction(0x95, 0, 0)])
}

/** bpf_skb_adjust_room takes a tunnel's headers off, and its result is returned. */
function shrinking(flags: number): Uint8Array {
  const [length, mode, options] = [instruction(0xb7, 2, -TUNNEL_BYTES), instruction(0xb7, 3, BPF_ADJ_ROOM_MAC), instruction(0xb7, 4, flags)]
  return program([length, mode, options, instruction(0x85, 0, ADJUST_ROOM), instruction(0x95, 0, 0)])
}

/** bpf_skb_set_tunnel_key takes a key of zeros, and its result is returned. */
function settingKey(bytes: number): Uint8Array {
  const zeros = Array.from({ length: KEY_ROOM / 8 }, (_, at) => zeroed(8 * at - KEY_ROOM))
  const key = [instruction(0xbf, (STACK << 4) | 2, 0), instruction(0x07, 2, -KEY_ROOM)]
  const rest = [instruction(0xb7, 3, bytes), instruction(0xb7, 4, 0), instruction(0x85, 0, SET_TUNNEL_KEY), instruction(0x95, 0, 0)]
  return program([...zeros, ...key, ...rest])
}

/** Eight bytes of the stack, at this offset. */
function zeroed(offset: number): Buffer {
  const store = instruction(0x7a, STACK, 0)
  new Int16Array(store.buffer, store.byteOffset, 4)[1] = offset
  return store
}

/** The register of the stack, and the bytes of it that hold a key. */
const [STACK, KEY_ROOM] = [10, 48]

/** Where the function of {@link callingOwn} begins. */
const OWN_AT = 2

/** `call own; exit; own: r0 = 0; exit` */
function callingOwn(): Uint8Array {
  return program([instruction(0x85, 0x10, OWN_AT - 1), instruction(0x95, 0, 0), instruction(0xb7, 0, 0), instruction(0x95, 0, 0)])
}

function tunnelled(): Uint8Array {
  const packet = Buffer.alloc(14 + TUNNEL_BYTES + 40)
  for (const [at, length, protocol] of [
    [14, TUNNEL_BYTES + 40, 17],
    [14 + TUNNEL_BYTES, 40, 6],
  ] as const) {
    packet.writeUInt16BE(0x0800, at - 2)
    packet.writeUInt8(0x45, at)
    packet.writeUInt16BE(length, at + 2)
    packet.writeUInt8(64, at + 8)
    packet.writeUInt8(protocol, at + 9)
  }
  packet.writeUInt16BE(4789, 14 + 22)
  packet.writeUInt16BE(TUNNEL_BYTES - 20 + 40, 14 + 24)
  return packet
}

function program(instructions: readonly Buffer[]): Uint8Array {
  return Buffer.concat(instructions)
}

/** struct bpf_insn in this machine's order: opcode, registers, offset (none here), immediate. */
function instruction(opcode: number, register: number, immediate: number): Buffer {
  const bytes = new Int32Array([0, immediate])
  const buffer = Buffer.from(bytes.buffer)
  buffer[0] = opcode
  buffer[1] = register
  return buffer
}
