// SPDX-License-Identifier: Apache-2.0
/** One packet through a loaded program, and its traces taken out again. Layer: cli.
 *
 * BPF_PROG_TEST_RUN sends nothing, but the program writes what it always writes: the flow, a client's backend,
 * counters. */
import { randomInt } from 'node:crypto'
import type { BpfProgram } from '#native'
import { ConfigError, errorCode } from '#lib/base/errors.ts'
import { hasPorts, type Packet } from '#lib/policy/packet.ts'
import { enumValue } from '#agent/maps/btf.ts'
import { catalogue } from '#agent/maps/catalogue.ts'
import { flowKey, reversed, type CtTuple, type Direction } from '#agent/maps/flow-key.ts'
import type { CtKey, CtValue, Frontend } from '#agent/maps/shapes.ts'
import { PinsError } from '../../errors.ts'
import type { PinnedTables } from '../../pins.ts'
import { frame } from './frame.ts'

/** What programs return, as far as they do; -1 as the kernel has it: go on. */
const ACTIONS: Readonly<Record<number, RunResult['action']>> = { [-1]: 'pass', 0: 'pass', 2: 'drop', 7: 'redirect' }
/** of struct __sk_buff */
const CONTEXT = { bytes: 192, ifindex: 40 } as const
const ETHERNET = 14

export interface RunResult {
  readonly action: 'pass' | 'drop' | 'redirect' | 'other'
  /** the program answers the sender itself, with an error */
  readonly answered: boolean
  /** names of drops that were counted meanwhile, by whatever packet */
  readonly drops: readonly string[]
  /** the flow that it made, and the leg of its packets; undefined: none */
  readonly flow: { readonly value: CtValue; readonly direction: Direction } | undefined
}

export interface RunOf {
  readonly program: BpfProgram
  readonly ifindex: number
  readonly mac: string
  readonly packet: Packet
  /** of the service that it means */
  readonly frontend: Frontend | undefined
  readonly inside: boolean
}

/** A packet with ends that no flow has. Throws ConfigError where those that are asked for belong to one. */
export function freshPacket(tables: PinnedTables, packet: Packet, given: boolean): Packet {
  const table = tables.open(catalogue.np_ct)
  const isFree = (port: number): boolean => table.get(keyOf({ ...packet, sport: port })[0]) === undefined
  if (given) {
    if (isFree(packet.sport)) return packet
    throw new ConfigError('--source-port', 'there is such a flow: netplanectl bpf conntrack shows it')
  }
  for (let attempt = 0; attempt < 100; attempt++) {
    const sport = randomInt(49_152, 65_536)
    if (isFree(sport)) return { ...packet, sport }
  }
  throw new PinsError('every source port that was tried belongs to a flow')
}

/** Throws PinsError on kernels that cannot run programs so. */
export function runPacket(tables: PinnedTables, of: RunOf): RunResult {
  const { program, ifindex, mac, packet } = of
  const flows = tables.openWritable(catalogue.np_ct)
  const [key, direction] = keyOf(packet)
  const putBack = affinityKeeper(tables, of)
  const before = dropsOf(tables)
  const context = Buffer.alloc(CONTEXT.bytes)
  context.writeUInt32LE(ifindex, CONTEXT.ifindex)
  try {
    const { retval, dataOut } = program.testRun({ data: frame({ packet, echoId: packet.sport, mac }), context })
    const drops = [...dropsOf(tables)].filter(([name, count]) => count > (before.get(name) ?? 0)).map(([name]) => name)
    const value = flows.get(key)
    const answered = isAnswer(dataOut, packet)
    return { action: ACTIONS[retval | 0] ?? 'other', answered, drops, flow: value && { value, direction } }
  } catch (thrown) {
    if (errorCode(thrown) !== 'EINVAL') throw thrown
    throw new PinsError('this kernel runs no program for another device (Linux 5.8 does): ask with --resources', thrown)
  } finally {
    const value = flows.get(key)
    if (value !== undefined)
      for (const one of [key, ...otherEntry(value, { key, direction, nat: enumValue(flows.btf, 'leg_flag', 'LEG_NAT') })]) flows.delete(one)
    putBack()
  }
}

/** Echoes have their id in both ports, what has none has zeros. */
function keyOf({ src, dst, sport, dport, protocol, icmp }: Packet): [CtKey, Direction] {
  const ports = icmp !== undefined ? { sport, dport: sport } : hasPorts(protocol) ? { sport, dport } : { sport: 0, dport: 0 }
  return flowKey({ src, dst, ...ports }, { proto: protocol, lane: 0 })
}

/** A translated flow has one on the backend's side as well. */
function otherEntry(value: CtValue, of: { readonly key: CtKey; readonly direction: Direction; readonly nat: number }): readonly CtKey[] {
  if (((value.leg[of.direction]?.flags ?? 0) & of.nat) === 0) return []
  return [flowKey(reversed(value.out), { proto: of.key.proto, lane: value.lane })[0]]
}

/** What the client's backend was, to be written again. */
function affinityKeeper(tables: PinnedTables, { frontend, inside, packet }: RunOf): () => void {
  if (frontend === undefined || frontend.affinity === 0) return () => undefined
  const table = tables.openWritable(catalogue.np_affinity)
  const key = { list: (inside ? frontend.inside : frontend.outside).list, client: packet.src }
  const before = table.get(key)
  return () => {
    if (before === undefined) table.delete(key)
    else table.set(key, before)
  }
}

function dropsOf(tables: PinnedTables): ReadonlyMap<string, number> {
  return new Map(tables.counters().flatMap(({ kind, name, value }) => (kind === 'drop' ? [[name, value] as const] : [])))
}

/** Is what the program leaves behind addressed to the sender? */
function isAnswer(data: Buffer, { src }: Packet): boolean {
  const v6 = data.readUInt16BE(ETHERNET - 2) === 0x86dd
  const dst = data.subarray(...(v6 ? [ETHERNET + 24, ETHERNET + 40] : [ETHERNET + 16, ETHERNET + 20]))
  return src.endsWith(dst.toString('latin1'))
}

/** As the packets leave. */
export function sentAs(
  { value, direction }: NonNullable<RunResult['flow']>,
  { packet, nat }: { readonly packet: Packet; readonly nat: number },
): CtTuple {
  const isTranslated = ((value.leg[direction]?.flags ?? 0) & nat) !== 0
  return isTranslated ? value.out : packet
}
