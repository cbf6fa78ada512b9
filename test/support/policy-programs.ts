// SPDX-License-Identifier: Apache-2.0
/** The loaded programs as the judge: rows into maps, packets through hooks, what they say of flows out of maps.
 * Layer: test. */
import type { BpfMap, BpfProgram } from '#native'
import { ifindexOf, possibleCpus } from '#native'
import { NO_SET } from '#agent/compile/policy/tables.ts'
import type { EndValue, PolicyRow, PolicyStep } from '#agent/compile/policy/tables.ts'
import { enumValue, findType } from '#agent/maps/btf.ts'
import type { Btf } from '#agent/maps/btf.ts'
import { catalogue } from '#agent/maps/catalogue.ts'
import { flowKey } from '#agent/maps/flow-key.ts'
import type { CtValue, NodeCfg } from '#agent/maps/shapes.ts'
import { ADDR_LOCAL_POD } from '#lib/base/bpf-constants.ts'
import { isV4 } from '#lib/base/ip.ts'
import type { Addr } from '#lib/base/ip.ts'
import { recordOf } from '#lib/base/object.ts'
import type { Packet } from '#lib/policy/packet.ts'
import { addrInfo } from '../../testkit/packets/addr-info.ts'
import { TestMap, loadObject, program } from '../../testkit/packets/objects.ts'
import type { Loaded } from '../../testkit/packets/objects.ts'
import { PolicyMaps } from '../../testkit/packets/policy-maps.ts'
import { bytesOf, opensNothing, portsOf } from './policy-packet.ts'

/** Where the packet is seen first. */
export type Entrance = 'from_workload' | 'to_workload' | 'from_host'

export interface Question {
  readonly packet: Packet
  readonly through: Entrance
  /** addresses that are pods of this node meanwhile: their rules are asked */
  readonly local: readonly Addr[]
}

/** What the programs decided, and the numbers of the rules that did; 0: none was asked, or none holds. */
export interface Answer {
  readonly action: 'allow' | 'deny'
  readonly egress: number
  readonly ingress: number
  readonly stagedEgress: number
  readonly stagedIngress: number
}

const RULES = ['egress_rule', 'ingress_rule', 'staged_egress_rule', 'staged_ingress_rule'] as const
type Rules = Pick<CtValue, (typeof RULES)[number]>

const NOBODY: EndValue = { identity: 0, ingress: NO_SET, egress: NO_SET, stagedIngress: NO_SET, stagedEgress: NO_SET }
const DROP = 2

export class PolicyPrograms {
  readonly #programs: ReadonlyMap<Entrance, BpfProgram>
  readonly #loaded: Loaded
  readonly #maps: PolicyMaps
  readonly #addrs
  readonly #ct
  readonly #drops: Drops
  readonly #scratch: Scratch
  readonly #ends = new Map<Addr, EndValue>()
  /** which the map has as pods of this node */
  #local: ReadonlySet<Addr> = new Set()
  readonly #ifindex = ifindexOf('lo')

  private constructor(loaded: Loaded) {
    this.#loaded = loaded
    this.#programs = new Map((['from_workload', 'to_workload', 'from_host'] as const).map((name) => [name, program(loaded, name)]))
    this.#maps = new PolicyMaps(loaded)
    this.#addrs = new TestMap(loaded, catalogue.np_addrs)
    this.#ct = new TestMap(loaded, catalogue.np_ct)
    this.#drops = new Drops(loaded)
    this.#scratch = new Scratch(loaded)
  }

  static async load(cfg: NodeCfg): Promise<PolicyPrograms> {
    // of two CPUs' scratch the later is the one that ran: by a clock that tells them apart
    return new PolicyPrograms(await loadObject('tc', { cfg: { ...cfg, coarse_clock: 0 } }))
  }

  take(steps: Iterable<PolicyStep>): void {
    for (const step of steps) if (step.kind !== 'epoch') for (const row of step.rows) this.write(row, step.kind === 'delete')
  }

  /** One map operation. */
  write(row: PolicyRow, isGone: boolean): void {
    if (row.table === 'hosts') return
    if (row.table !== 'ends') {
      this.#maps.write(row, isGone)
      return
    }
    if (isGone) this.#ends.delete(row.key.addr)
    else this.#ends.set(row.key.addr, row.value)
    this.#show(row.key.addr, this.#local.has(row.key.addr))
  }

  /** The flow is new, and forgotten afterwards. Throws when it ended for another reason than policy. */
  ask({ packet, through, local }: Question): Answer {
    this.#setLocal(new Set(local))
    const before = this.#drops.byPolicy
    const action = this.#run(through, packet) === DROP ? 'deny' : 'allow'
    if (action === 'deny' && this.#drops.byPolicy !== before + 1) throw new Error(`${through}: dropped, but not by policy`)
    const rules = (action === 'deny' ? undefined : this.#takeFlow(packet)) ?? this.#scratch.rules()
    return {
      action,
      egress: rules.egress_rule,
      ingress: rules.ingress_rule,
      stagedEgress: rules.staged_egress_rule,
      stagedIngress: rules.staged_ingress_rule,
    }
  }

  /** Rows of policy in the maps, addresses among them. */
  async rows(): Promise<number> {
    return (await this.#maps.count()) + this.#ends.size
  }

  async clear(): Promise<void> {
    this.#setLocal(new Set())
    this.#ends.clear()
    await this.#addrs.clear()
    await this.#maps.clear()
  }

  close(): void {
    for (const run of this.#programs.values()) run.close()
    for (const map of [this.#maps, this.#addrs.map, this.#ct.map, this.#drops, this.#scratch]) map.close()
    this.#loaded.object.close()
  }

  #run(through: Entrance, packet: Packet): number {
    const run = this.#programs.get(through)
    if (run === undefined) throw new Error(`no program ${through}`)
    return run.testRun({ data: bytesOf(packet) }).retval
  }

  /** undefined for what is let in and opens nothing. */
  #takeFlow(packet: Packet): Rules | undefined {
    const { sport, dport } = portsOf(packet, isV4(packet.src))
    const [key] = flowKey({ src: packet.src, dst: packet.dst, sport, dport }, { proto: packet.protocol, lane: 0 })
    const value = this.#ct.get(key)
    const none = opensNothing(packet, isV4(packet.src))
    if ((value === undefined) !== none) throw new Error(none ? 'what opens nothing has made a flow' : 'let in without a flow')
    this.#ct.delete(key)
    return value
  }

  #setLocal(wanted: ReadonlySet<Addr>): void {
    const before = this.#local
    this.#local = wanted
    for (const addr of before) if (!wanted.has(addr)) this.#show(addr, false)
    for (const addr of wanted) if (!before.has(addr)) this.#show(addr, true)
  }

  #show(addr: Addr, isLocal: boolean): void {
    const end = this.#ends.get(addr)
    if (end === undefined && !isLocal) {
      this.#addrs.delete(addr)
      return
    }
    const { identity, ingress, egress, stagedIngress, stagedEgress } = end ?? NOBODY
    const sets = { identity, ingress, egress, staged_ingress: stagedIngress, staged_egress: stagedEgress }
    this.#addrs.set(addr, addrInfo(isLocal ? ADDR_LOCAL_POD : 0, { ...sets, ifindex: isLocal ? this.#ifindex : 0 }))
  }
}

/** How many packets policy has ended. */
class Drops {
  readonly #map: BpfMap
  readonly #key = Buffer.alloc(4)

  constructor({ object, btf }: Loaded) {
    this.#map = object.map('np_counters')
    this.#key.writeUInt32LE(enumValue(btf, 'drop', 'DROP_POLICY'))
  }

  get byPolicy(): number {
    const values = this.#map.lookup(this.#key) ?? Buffer.alloc(0)
    let sum = 0
    for (let at = 0; at < values.length; at += 8) sum += Number(values.readBigUInt64LE(at))
    return sum
  }

  close(): void {
    this.#map.close()
  }
}

/** What a program found out of a flow that it did not enter, where it left it. */
class Scratch {
  readonly #map: BpfMap
  readonly #at: Readonly<Record<'now' | keyof Rules, number>>

  constructor({ object, btf }: Loaded) {
    this.#map = object.map('np_scratch')
    const judged = memberOf(btf, 'scratch', 'judged')
    const rule = (name: string): number => judged + memberOf(btf, 'judged', name)
    this.#at = {
      now: memberOf(btf, 'scratch', 'now'),
      egress_rule: rule('egress_rule'),
      ingress_rule: rule('ingress_rule'),
      staged_egress_rule: rule('staged_egress_rule'),
      staged_ingress_rule: rule('staged_ingress_rule'),
    }
  }

  /** Of the CPU that ran last. */
  rules(): Rules {
    const values = this.#map.lookup(Buffer.alloc(4)) ?? Buffer.alloc(0)
    const stride = values.length / possibleCpus()
    let [last, latest] = [0, -1n]
    for (let at = 0; at < values.length; at += stride) {
      const now = values.readBigUInt64LE(at + this.#at.now)
      if (now > latest) [last, latest] = [at, now]
    }
    return recordOf(RULES, (name) => values.readUInt32LE(last + this.#at[name]))
  }

  close(): void {
    this.#map.close()
  }
}

/** Bytes from the start of the struct. */
function memberOf(btf: Btf, struct: string, name: string): number {
  const member = findType(btf, 'struct', struct)?.members.find((one) => one.name === name)
  if (member === undefined) throw new Error(`struct ${struct} has no ${name}`)
  return member.bitOffset / 8
}
