// SPDX-License-Identifier: Apache-2.0
/** The mark that a packet must leave a program with, by what became of it: what bpf/include/base/mark.h says to the
 * programs behind. Layer: testkit. */
import { BpfProgram } from '#native'
import { errorCode } from '#lib/base/errors.ts'
import { tcp } from './packet.ts'
import { readIp } from './packet-text.ts'
import type { Step } from './case.ts'
import { ASKED, DECIDED, TRANSLATED, families } from './cluster.ts'

const NODE = families.map((f) => f.node)
const PODS = families.flatMap((f) => [f.pod, f.secondPod, f.maskedPod, f.routedPod, f.elsewherePod])
const ARP = 0x0806
const ARP_REPLY = 2

/** what a test run is given and gives back beside the packet: struct __sk_buff */
const CONTEXT_SIZE = 192
const MARK_AT = 8
const INGRESS_IFINDEX_AT = 36
const IFINDEX_AT = 40
/** the last word of the control block */
const WORD_AT = 64
const SCHED_CLS = 3
/** `r0 = 0; exit` */
const NOTHING = Buffer.from('b7000000000000009500000000000000', 'hex')

/** What a packet has beside its bytes; `arrived`: the index of the device by which the node got it, 0 of its own;
 * `device`: of the one that it passes, 0 the loopback device; `word`: what the program before it on
 * the hook has left. */
export interface Came {
  readonly mark: number
  readonly arrived?: number
  readonly device?: number
  readonly word?: number
}

export type Run = ReturnType<BpfProgram['testRun']> & { readonly mark: number; readonly word: number }

export function runMarked(program: BpfProgram, packet: Uint8Array, { mark, arrived = 0, device = 0, word = 0 }: Came): Run {
  const context = Buffer.alloc(CONTEXT_SIZE)
  context.writeUInt32LE(mark, MARK_AT)
  context.writeUInt32LE(arrived, INGRESS_IFINDEX_AT)
  context.writeUInt32LE(device, IFINDEX_AT)
  context.writeUInt32LE(word, WORD_AT)
  const run = program.testRun({ data: packet, context })
  return { ...run, mark: run.contextOut.readUInt32LE(MARK_AT), word: run.contextOut.readUInt32LE(WORD_AT) }
}

/** Does this kernel give packets of test runs a mark, and tell it? Since 5.6; vendors have it in older ones. */
export function takesMarks(): boolean {
  return takes({ mark: DECIDED })
}

/** The same of the device by which the node got them. */
export function takesArrivals(): boolean {
  return takes({ mark: DECIDED, arrived: 1 })
}

/** And of the device that they pass, other than loopback's. */
export function takesDevices(index: number): boolean {
  return takes({ mark: DECIDED, device: index })
}

function takes(came: Came): boolean {
  const program = BpfProgram.load({ type: SCHED_CLS, instructions: NOTHING })
  const packet = tcp('10.0.0.1:1', '10.0.0.2:2')
  try {
    program.testRun({ data: packet })
    return runMarked(program, packet, came).mark === DECIDED
  } catch (error) {
    if (errorCode(error) === 'EINVAL') return false
    throw error
  } finally {
    program.close()
  }
}

/** undefined: the packet ends here. `redirectsPeer`: what enters goes to a pod without another program's look. */
export function impliedMark(step: Step, out: Uint8Array, redirectsPeer: boolean): number | undefined {
  const came = step.mark ?? 0
  if (step.action === 'drop') return undefined
  const asked = step.through === 'from_workload' ? ASKED : 0
  if (step.action === 'pass') return came | asked | (endsOf(out) === endsOf(step.packet) ? 0 : TRANSLATED)
  return isMade(out, step.packet) || !isHandedOver(step, out, redirectsPeer) ? came | DECIDED : came
}

/** Sent where no program asks for the mark: into the pod itself, or to the node by the loopback device. */
function isHandedOver({ through }: Step, out: Uint8Array, redirectsPeer: boolean): boolean {
  const { dst } = readIp(out)
  return through === 'to_host' ? NODE.includes(dst) : redirectsPeer && PODS.includes(dst)
}

/** By the program itself, for the packet's sender: an answer for the gateway, an RST or an ICMP error. */
function isMade(out: Uint8Array, packet: Uint8Array): boolean {
  const [to, from] = typeOf(out) === ARP ? [] : [readIp(out).dst, readIp(packet).src]
  return isAnswer(out) && !isAnswer(packet) && to === from
}

function isAnswer(frame: Uint8Array): boolean {
  const { proto, l4 } = readIp(frame)
  const [kind = 0, flags = 0] = [l4[0], l4[13]]
  if (typeOf(frame) === ARP) return frame[21] === ARP_REPLY
  if (proto === 6) return (flags & 4) !== 0
  return proto === 1 ? [3, 11].includes(kind) : proto === 58 && (kind < 128 || kind === 136)
}

/** Addresses, and ports or an echo's id. */
function endsOf(frame: Uint8Array): string {
  const { proto, src, dst, l4 } = readIp(frame)
  const at = proto === 1 || proto === 58 ? 4 : 0
  return `${src} ${dst} ${proto} ${Buffer.from(l4.subarray(at, at + (at ? 2 : 4))).toString('hex')}`
}

function typeOf(frame: Uint8Array): number {
  return Buffer.from(frame).readUInt16BE(12)
}

export function markText(mark: number): string {
  return `0x${mark.toString(16).padStart(8, '0')}`
}
