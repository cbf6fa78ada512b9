// SPDX-License-Identifier: Apache-2.0
/** The whole surface of the native addon, each entry with the C call it wraps. Layer: native.
 *
 * Every method may throw a {@link NativeError}. Lengths are checked here, in C++; a closed handle throws code "EBADF",
 * a wrong type or length throws code "EINVAL". All fds are O_CLOEXEC and owned by exactly one handle; `close()` is
 * idempotent. The classes have no public constructors. A handle that was not closed is closed when it is collected. */

/** `code` is the errno's name ("ENOENT"), `op` the operation ("bpf_map_update_elem"). Load failures carry the
 * verifier's log. */
export interface NativeError extends Error {
  readonly code: string
  readonly errno: number
  readonly op: string
  readonly verifierLog?: string
  /** batch operations: how many entries were done before the failure */
  readonly done?: number
}

export interface MapSpec {
  readonly name: string
  readonly type: number
  readonly keySize: number
  readonly valueSize: number
  readonly maxEntries: number
  readonly flags: number
  /** type ids in the object's own BTF; 0 when the map declares none */
  readonly keyTypeId: number
  readonly valueTypeId: number
}

export interface ProgramSpec {
  readonly name: string
  readonly section: string
  readonly type: number
  readonly instructions: number
}

export interface MapInfo {
  readonly id: number
  readonly name: string
  readonly type: number
  readonly keySize: number
  readonly valueSize: number
  readonly maxEntries: number
  readonly flags: number
  /** id of the map's BTF and its type ids in it; 0 when it has none */
  readonly btfId: number
  readonly keyTypeId: number
  readonly valueTypeId: number
}

export interface ProgramInfo {
  readonly id: number
  readonly name: string
  readonly type: number
  /** 16 hex digits: the kernel's digest of the instructions */
  readonly tag: string
  readonly xlatedBytes: number
  readonly jitedBytes: number
  /** instructions the verifier processed; 0 where the kernel does not say (before 5.16) */
  readonly verifiedInstructions: number
}

export interface LinkInfo {
  readonly id: number
  /** enum bpf_link_type of the running kernel */
  readonly type: number
  readonly programId: number
  /** tcx, xdp: the interface, 0 when it is gone */
  readonly ifindex: number
  /** tcx, cgroup: enum bpf_attach_type */
  readonly attachType: number
}

/** bpf_object: open → (inspect, set knobs, reuse maps) → load → take maps and programs. */
export class BpfObject {
  /** bpf_object__open_file */
  static open(path: string): BpfObject
  /** btf__raw_data of the opened object */
  btf(): Buffer
  /** bpf_object__for_each_map */
  maps(): MapSpec[]
  /** bpf_object__for_each_program */
  programs(): ProgramSpec[]
  /** bpf_map__initial_value of the read-only data section, copied; throws ENOENT when the object has none */
  rodata(): Buffer
  /** bpf_map__set_initial_value: `bytes` must have the section's exact length */
  setRodata(bytes: Uint8Array): void
  /** bpf_map__set_max_entries */
  setMaxEntries(map: string, entries: number): void
  /** bpf_map__set_type; a ring buffer has neither keys nor values */
  setMapType(map: string, type: number): void
  /** bpf_map__set_map_flags */
  setMapFlags(map: string, flags: number): void
  /** bpf_map__set_autocreate(false) */
  skipMap(map: string): void
  /** bpf_map__reuse_fd (the object keeps a duplicate) */
  reuseMap(map: string, handle: BpfMap): void
  /** bpf_program__set_autoload */
  setAutoload(program: string, on: boolean): void
  /** Replaces every call of these helpers, also in subprograms, by `r0 = -EOPNOTSUPP` just before the kernel sees the
   * program: for kernels before 5.5, which refuse an unreachable call of a helper they do not have. Call it after
   * setAutoload: throws EOPNOTSUPP when a program to be loaded is in a section other than tc, classifier, xdp and
   * our cgroup hooks. */
  stubHelpers(helpers: readonly number[]): void
  /** bpf_object__load on a worker thread; the handle may not be used until it settles (EBUSY; close() waits). The
   * error carries the whole verifier log of the failing program. */
  load(): Promise<void>
  /** The same for tests, with what the verifier says of its work (log level 4, since 5.2) by program; the error
   * carries no log. */
  loadWithStatistics(): Promise<Readonly<Record<string, string>>>
  /** bpf_object__find_map_fd_by_name, duplicated; only after load */
  map(name: string): BpfMap
  /** bpf_program__fd, duplicated; only after load */
  program(name: string): BpfProgram
  close(): void
}

/** Per-CPU maps: a value is `stride × possibleCpus` bytes, stride being the value size rounded up to 8. */
export class BpfMap {
  /** bpf_map_create, without BTF */
  static create(spec: { name: string; type: number; keySize: number; valueSize: number; maxEntries: number; flags?: number }): BpfMap
  /** bpf_obj_get; throws EINVAL when the pin is no map */
  static openPin(path: string): BpfMap
  /** bpf_map_get_fd_by_id */
  static openId(id: number): BpfMap
  /** bpf_map_get_next_id: of all maps of the machine the one after this id, which opens none; undefined: the last */
  static nextId(id: number): number | undefined
  /** bpf_obj_get_info_by_fd */
  info(): MapInfo
  /** bytes of one value as this API takes and gives it (per-CPU: stride × CPUs) */
  readonly valueBytes: number
  readonly keyBytes: number
  /** bpf_map_lookup_elem; undefined when there is no such key */
  lookup(key: Uint8Array): Buffer | undefined
  /** bpf_map_update_elem; flags: 0 any, 1 no-exist, 2 exist */
  update(key: Uint8Array, value: Uint8Array, flags?: number): void
  /** like update, for values that are fds (program arrays, maps in maps) */
  updateFd(key: Uint8Array, handle: BpfProgram | BpfMap): void
  /** bpf_map_delete_elem; false when there was no such key */
  delete(key: Uint8Array): boolean
  /** bpf_map_get_next_key; undefined key: the first */
  nextKey(key: Uint8Array | undefined): Buffer | undefined
  /** bpf_map_update_batch, or single updates where the kernel or map type has none. `keys` and `values` hold `count`
   * entries back to back. Returns how many were written; a failure throws with `done`. */
  updateBatch(keys: Uint8Array, values: Uint8Array, count: number): number
  /** bpf_map_delete_batch or single deletes; missing keys are skipped. Returns how many existed. */
  deleteBatch(keys: Uint8Array, count: number): number
  /** Of each key its entry, when that still has this value: bpf_map_lookup_elem and bpf_map_delete_elem, less than a
   * microsecond apart. Returns how many were deleted. */
  deleteSame(keys: Uint8Array, values: Uint8Array, count: number): number
  /** bpf_map_lookup_batch (chunk grown on ENOSPC) or a next-key walk, on a worker thread. An entry deleted meanwhile
   * may be missing; none comes twice. EAGAIN when the map changes so fast that the walk never ends. The handle may
   * be closed meanwhile. */
  dump(): Promise<{ keys: Buffer; values: Buffer; count: number }>
  /** One part of the map, on a worker thread: bpf_map_lookup_batch, or `room` steps from key to key. `cursor` is the
   * `next` of the part before, undefined for the first; no `next`: that was the last. In hashes with batches no
   * entry comes twice; a walk whose key was deleted starts again from the first, so bound the parts. More than
   * `room` when a bucket has more. The handle may be closed meanwhile. */
  readChunk(
    cursor: Uint8Array | undefined,
    room: number,
  ): Promise<{ keys: Buffer; values: Buffer; count: number; next: Buffer | undefined }>
  /** bpf_obj_pin */
  pin(path: string): void
  close(): void
}

export interface TestRunOptions {
  readonly data: Uint8Array
  /** struct __sk_buff / xdp_md bytes; kernels before 5.8 take only priority and cb */
  readonly context?: Uint8Array
  readonly repeat?: number
}

export class BpfProgram {
  /** bpf_prog_load; `type` is enum bpf_prog_type. For probes: the error's errno says why not. */
  static load(options: {
    type: number
    instructions: Uint8Array
    license?: string
    expectedAttachType?: number
    /** of a program on socket buffers: the instruction at which a function begins that is verified by itself */
    globalAt?: number
  }): BpfProgram
  static openPin(path: string): BpfProgram
  /** bpf_prog_get_fd_by_id */
  static openId(id: number): BpfProgram
  /** bpf_prog_get_next_id, as of maps */
  static nextId(id: number): number | undefined
  info(): ProgramInfo
  /** bpf_prog_test_run_opts; dataOut is the whole packet after the last run; contextOut is empty when no context was
   * given */
  testRun(options: TestRunOptions): { retval: number; dataOut: Buffer; contextOut: Buffer; durationNs: number }
  pin(path: string): void
  close(): void
}

export type Direction = 'ingress' | 'egress'
export type CgroupHook =
  'connect4' | 'connect6' | 'sendmsg4' | 'sendmsg6' | 'recvmsg4' | 'recvmsg6' | 'getpeername4' | 'getpeername6' | 'sock_ops'

/** A bpf_link: lives as long as a handle or a pin of it does. */
export class BpfLink {
  /** bpf_link_create with attach type 46 (ingress) or 47 (egress); ≥ 6.6 */
  static attachTcx(program: BpfProgram, ifindex: number, direction: Direction): BpfLink
  /** bpf_link_create BPF_XDP; ≥ 5.9; flags as XDP_FLAGS_* */
  static attachXdp(program: BpfProgram, ifindex: number, flags?: number): BpfLink
  /** bpf_link_create on a cgroup directory; ≥ 5.7 */
  static attachCgroup(program: BpfProgram, cgroupPath: string, hook: CgroupHook): BpfLink
  static openPin(path: string): BpfLink
  info(): LinkInfo
  /** bpf_link_update: atomic */
  update(program: BpfProgram): void
  /** bpf_link_detach; ≥ 5.9 */
  detach(): void
  pin(path: string): void
  close(): void
}

/** A filter at a clsact hook, for kernels without tcx. */
export interface TcFilter {
  readonly ifindex: number
  readonly direction: Direction
  readonly handle: number
  readonly priority: number
}
/** bpf_tc_hook_create: false when the clsact qdisc was there already, or another's ingress qdisc in its place */
export function tcCreateHook(ifindex: number): boolean
/** bpf_tc_attach with BPF_TC_F_REPLACE: atomic; returns the attached program's id */
export function tcAttach(filter: TcFilter, program: BpfProgram): number
/** bpf_tc_query: the program's id, undefined when nothing is there, be it for want of the qdisc */
export function tcQuery(filter: TcFilter): number | undefined
/** bpf_tc_detach: false when nothing was there */
export function tcDetach(filter: TcFilter): boolean
/** bpf_tc_hook_destroy of the whole clsact qdisc, with everyone's filters on it; EINVAL when there is none */
export function tcDestroyHook(ifindex: number): void

/** BPF_PROG_QUERY on a tcx hook: ids in order of execution; ENOTSUP-like errors pass through */
export function tcxQuery(ifindex: number, direction: Direction): { programIds: number[]; linkIds: number[] }
/** BPF_PROG_QUERY on a cgroup directory */
export function cgroupQuery(cgroupPath: string, hook: CgroupHook): number[]
/** BPF_PROG_ATTACH with BPF_F_ALLOW_MULTI: for kernels without cgroup links */
export function cgroupAttach(cgroupPath: string, hook: CgroupHook, program: BpfProgram): void
/** BPF_PROG_DETACH: false when it was not attached */
export function cgroupDetach(cgroupPath: string, hook: CgroupHook, program: BpfProgram): boolean

/** bpf_set_link_xdp / bpf_xdp_attach without link; undefined program: detach */
export function xdpAttach(ifindex: number, program: BpfProgram | undefined, flags?: number): void
/** bpf_xdp_query_id: undefined when none */
export function xdpQuery(ifindex: number): number | undefined

/** Ring buffer (≥ 5.8) or perf event array, drained in batches: one callback a drain, with records back to back.
 * Each is its length as u32 LE, its bytes, and zeros up to a multiple of 8 bytes in all. Perf records are up to 7
 * bytes longer than what the program wrote: the kernel pads them. An open reader keeps the event loop alive. */
export class EventReader {
  /** kind follows the map's type; `onBatch` runs on the JS thread whenever records are there, with at most
   * `maxBytes` (1 MiB) and the record that passed it; `perfPages` (16, a power of two) is the size of each CPU's
   * perf buffer */
  static open(
    map: BpfMap,
    onBatch: (records: Buffer, count: number) => void,
    options?: { maxBytes?: number; perfPages?: number },
  ): EventReader
  /** Records the kernel or the reader had to drop so far, also after close(). A ring buffer does not count: there
   * the program sees that it is full. */
  lost(): number
  close(): void
}

/** A netlink socket that moves bytes; messages are made and parsed in TypeScript. */
export class NetlinkSocket {
  /** socket(AF_NETLINK, SOCK_RAW, protocol) + bind; `groups` are joined by NETLINK_ADD_MEMBERSHIP. NETLINK_EXT_ACK
   * is set. `netns`: file of the network namespace in which it is made, and stays (setns on a thread of its own). */
  static open(options: { protocol: number; groups?: readonly number[]; receiveBufferBytes?: number; netns?: string }): NetlinkSocket
  /** this socket's port id */
  readonly port: number
  /** sendto the kernel */
  send(bytes: Uint8Array): void
  /** recv without waiting: one datagram from the kernel, undefined when none is there. Throws ENOBUFS when the
   * kernel had to drop some. */
  receive(): Buffer | undefined
  /** recv, waiting at most `ms` (poll): for request and answer at start-up */
  receiveWait(ms: number): Buffer | undefined
  /** uv_poll: called while there is something to receive, also an error; undefined stops. Keeps the event loop
   * alive. */
  onReadable(callback: (() => void) | undefined): void
  close(): void
}

/** libbpf_num_possible_cpus */
export function possibleCpus(): number
/** if_nametoindex; 0 when there is none */
export function ifindexOf(name: string): number
/** clock_gettime(CLOCK_MONOTONIC) in ns as a double: the clock of bpf_ktime_get_ns */
export function monotonicNs(): number
/** How often a second the kernel's jiffies move: from clock_getres(CLOCK_MONOTONIC_COARSE), which is one tick */
export function ticksPerSecond(): number
/** getsockopt(SO_NETNS_COOKIE): this process's network namespace as 16 hex digits; zeros before 5.14 */
export function netnsCookie(): string
/** open and write in that network namespace: for files below /proc/sys/net, which show the namespace of the thread
 * that opens them */
export function writeInNetns(netns: string, path: string, text: string): void
/** unshare(CLONE_NEWNET) on a thread of its own: a new network namespace, which goes with its descriptor. Returns that,
 * which the caller must close; its file is /proc/self/fd/N */
export function makeNetns(): number
/** socket() in that network namespace, in which it stays: neither bound nor connected, without waiting. `hopLimit`:
 * setsockopt(IP_TTL or IPV6_UNICAST_HOPS), from 1 to 255; the kernel's own without it. Returns its descriptor, which
 * the caller must close */
export function socketInNetns(netns: string, family: 'IPv4' | 'IPv6', protocol: 'TCP' | 'UDP', hopLimit?: number): number
/** open and flock(LOCK_EX) without waiting. Creates the file, for its owner alone, also in place of one that another
 * user owns or may open. Returns its descriptor, which the caller must close; the kernel closes it when the process
 * ends. undefined: another process has locked it */
export function lockFile(path: string): number | undefined
/** connect and getsockopt(SO_PEERCRED): the user id of the process that listens at this abstract name; undefined:
 * none does, or its queue is full */
export function abstractOwner(name: string): number | undefined
/** socket(AF_PACKET, SOCK_DGRAM) with a classic filter, on all devices: each UDP packet to this port that comes in,
 * from its IP header on, before programs of tc, firewalls and sockets have it. A read gives one packet, or EAGAIN.
 * Returns its descriptor, which the caller must close. */
export function openUdpTap(port: number): number
/** socket(AF_PACKET, SOCK_DGRAM) with a classic filter, of this family on all devices: each whole UDP packet to this
 * port whose payload begins with 0x01000000, and which programs of tc have left to the kernel, before firewalls have
 * it. A read gives the first 256 bytes of one, from its IP header on, or EAGAIN. Returns its descriptor, which the
 * caller must close. */
export function openProbeTap(port: number, family: 'IPv4' | 'IPv6'): number
/** socket(SOCK_RAW, IPPROTO_UDP), bind and connect: each write sends one packet, which begins
 * with its UDP header and is never cut. It hears nothing. Returns its descriptor, which the caller must close, and the
 * MTU of the way. */
export function openRawUdp(source: string, address: string): { fd: number; mtu: number }
/** socket(SOCK_RAW, IPPROTO_UDP) and sendto: one UDP packet as a kernel's tunnel sends it, which programs of cgroups do
 * not ask about. Throws EPERM where a firewall of the node drops it. */
export function sendRawUdp(address: string, sourcePort: number, port: number, payload: Uint8Array): void
/** btf__load_from_kernel_by_id + raw data: the BTF a loaded map brought along */
export function btfById(id: number): Buffer
/** libbpf's version, "1.1" */
export function libbpfVersion(): string
/** setrlimit(RLIMIT_MEMLOCK, infinity): needed before 5.11 */
export function raiseMemlock(): void
/** Whether updateBatch, deleteBatch and dump use the kernel's batch commands, on at start, for the whole process.
 * Off takes the way of kernels before 5.6: for the tests of that way, and for comparing. */
export function setBatchCalls(on: boolean): void
