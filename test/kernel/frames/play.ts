// SPDX-License-Identifier: Apache-2.0
/** Sends sequences of frames through the programs as a node would, from hook to hook, and shortens those that went
 * wrong. Layer: test. */
import { setImmediate } from 'node:timers/promises'
import { formatAddr, isWithin } from '#lib/base/ip.ts'
import { devices } from '../../../testkit/packets/cluster.ts'
import { packetText } from '../../../testkit/packets/packet-text.ts'
import type { PacketRunner } from '../../../testkit/packets/runner.ts'
import { NO_FAILSAFES } from '../../../testkit/packets/failsafes.ts'
import { sequenceOf } from './draw.ts'
import type { Sent, Sequence } from './draw.ts'
import { LOCAL, NEVER_FROM_V4, NEVER_FROM_V6, NODE, REACHED } from './places.ts'
import { isError, readFrame, untagged } from './read.ts'
import { Rules } from './rules.ts'
import type { Journey, Place } from './rules.ts'

export const LENGTH = 25

export interface Count {
  frames: number
  /** that did arrive */
  arrived: number
  plain: number
}

/** What is wrong with the first frame that should not have arrived, or should have; undefined: nothing. */
function firstFault(runner: PacketRunner, { given, frames }: Sequence, count?: Count): Fault | undefined {
  const name = 'frames'
  const filled = runner.run({ name, given, steps: [] })
  if (filled !== undefined) throw new Error(filled)
  const rules = new Rules(given.policies ?? [], given.failsafes ?? NO_FAILSAFES)
  for (const [at, one] of frames.entries()) {
    const journey = travel(runner, one)
    if (count !== undefined) {
      count.frames++
      if (journey.place !== 'dropped') count.arrived++
    }
    if (journey.place === 'dropped') rules.dropped(journey, placeOf(one.frame))
    const why = rules.fault(journey) ?? missing(one, rules, { journey, count })
    if (why !== undefined) return { at, why, journey }
  }
  return undefined
}

interface Fault {
  readonly at: number
  readonly why: string
  readonly journey: Journey
}

/** Programs that drop everything let nothing wrong through. */
function missing(one: Sent, rules: Rules, { journey, count }: { journey: Journey; count: Count | undefined }): string | undefined {
  if (one.isPlain !== true || !rules.allows(one.frame)) return undefined
  if (count !== undefined) count.plain++
  return journey.place === 'pod' || journey.place === 'out' ? undefined : 'every rule allows it, and it does not arrive'
}

/** On through the kernel's routing where a program passes it on. */
function travel(runner: PacketRunner, { through, frame: sent }: Sent): Journey {
  const ends = (place: Place, got: Uint8Array): Journey => ({ through, sent, place, got })
  if (through === 'from_host' && runner.pass('untracked', sent).action === 'drop') return ends('dropped', sent)
  const first = runner.pass(through, sent)
  if (first.action === 'drop') return ends('dropped', sent)
  // with a tag beside the packet, which test runs do not show
  if (through === 'from_host' && first.action === 'pass' && readFrame(sent).kind === 'vlan') return ends('dropped', sent)
  const place = placeOf(first.out)
  if (through === 'to_workload') return ends(place === 'pod' ? 'pod' : 'out', first.out)
  if (first.action === 'redirect') return ends(isAnswer(sent, first.out) ? 'dropped' : place, first.out)
  if (through === 'to_host' || place === 'node') return ends(place === 'node' ? 'node' : 'out', first.out)
  const routed = throughKernel(first.out)
  if (routed === undefined) return { ...ends('dropped', first.out), byKernel: true }
  const arrived = devices[through === 'from_host' ? 'underlay' : 'pod'].name
  const second = runner.pass(place === 'pod' ? 'to_workload' : 'to_host', routed, { mark: first.mark, arrived })
  if (second.action === 'drop') return ends('dropped', sent)
  return ends(second.action === 'redirect' && isAnswer(sent, second.out) ? 'dropped' : place, second.out)
}

/** What forwards: without tags of priority; nothing of another network, nothing that is for all by its frame, nor
 * from an address that no host on a network has. */
function throughKernel(frame: Uint8Array): Uint8Array | undefined {
  const seen = readFrame(frame)
  if (seen.kind === 'vlan') return undefined
  if (seen.kind !== 'ip') return untagged(frame)
  const isToAll = ((frame[0] ?? 0) & 1) === 1
  if (isToAll || seen.hop < 2 || seen.broken || isWithin(seen.v4 ? NEVER_FROM_V4 : NEVER_FROM_V6, seen.src)) return undefined
  if (!LOCAL.includes(seen.dst) && !isWithin(REACHED, seen.dst)) return undefined
  return untagged(frame)
}

function placeOf(frame: Uint8Array): Place {
  const seen = readFrame(frame)
  if (seen.kind !== 'ip') return 'node'
  if (LOCAL.includes(seen.dst) && !seen.mapped) return 'pod'
  // the last: to all of the node's network
  const isHere = /^(ff|22[4-9]\.|23\d\.|255\.|127\.|::1$|192\.168\.50\.255$)/.test(formatAddr(seen.dst))
  return NODE.includes(seen.dst) || isHere ? 'node' : 'out'
}

/** Made by the program for the frame's sender: a reset, an ICMP error, an answer about the gateway. */
function isAnswer(sent: Uint8Array, got: Uint8Array): boolean {
  const [was, is] = [readFrame(sent), readFrame(got)]
  if (was.kind === 'arp') return is.kind === 'arp'
  if (was.kind !== 'ip' || is.kind !== 'ip' || is.dst !== was.src || is.inside.kind !== 'whole') return false
  const { reading, l4 } = is.inside
  if (reading === undefined) return false
  return isError(reading, is.v4) || reading.icmp?.type === 136 || (reading.protocol === 6 && ((l4[13] ?? 0) & 4) !== 0)
}

/** Without frames that are not needed for it. */
function shortened(runner: PacketRunner, sequence: Sequence, fault: Fault): readonly [Sequence, Fault] {
  let [short, last] = [{ ...sequence, frames: sequence.frames.slice(0, fault.at + 1) }, fault]
  for (let at = short.frames.length - 2; at >= 0; at--) {
    const without = { ...short, frames: short.frames.filter((_, index) => index !== at) }
    const again = firstFault(runner, without)
    if (again?.why !== fault.why) continue
    short = { ...without, frames: without.frames.slice(0, again.at + 1) }
    last = again
    at = Math.min(at, short.frames.length - 1)
  }
  for (let at = (short.given.policies?.length ?? 0) - 1; at >= 0; at--) {
    const given = { ...short.given, policies: short.given.policies?.filter((_, index) => index !== at) ?? [] }
    const again = firstFault(runner, { ...short, given })
    if (again?.why === fault.why && again.at === last.at) short = { ...short, given }
  }
  return [short, last]
}

export type Told = { readonly count: Count } & ({ readonly fault?: undefined } | { readonly fault: string; readonly seed: number })

/** As many frames as are asked for, or up to the first that goes wrong. */
export async function play(runner: PacketRunner, { seed, frames }: { readonly seed: number; readonly frames: number }): Promise<Told> {
  const count: Count = { frames: 0, arrived: 0, plain: 0 }
  for (let own = seed; count.frames < frames; own++) {
    // a million of them are not to keep the runner of tests waiting
    await setImmediate()
    const sequence = sequenceOf(own, LENGTH)
    const fault = firstFault(runner, sequence, count)
    if (fault === undefined) continue
    const text = faultText(...shortened(runner, sequence, fault))
    return { count, seed: own, fault: `frame ${count.frames}: ${text}\nagain: make t F=test/kernel/frames.test.ts SEED=${own}` }
  }
  return { count }
}

function faultText({ given, frames }: Sequence, { why, journey }: Fault): string {
  return [
    `${why}; it got to: ${journey.place}`,
    ...(given.policies ?? []).map(({ name, subject, scope, tier, ingress, egress }) =>
      [
        `  policy ${name} of ${JSON.stringify(subject)} ${scope} ${tier}`,
        ...rulesText('ingress', ingress),
        ...rulesText('egress', egress),
      ].join('\n'),
    ),
    `  backends ${JSON.stringify(given.backends)} failsafes ${JSON.stringify(given.failsafes)}`,
    ...frames.map(({ through, frame }) => `  ${through}: ${packetText(frame)}\n    ${Buffer.from(frame).toString('hex')}`),
    `  arrived as ${packetText(journey.got)}`,
  ].join('\n')
}

function rulesText(side: string, rules: readonly object[] | undefined): readonly string[] {
  if (rules === undefined) return []
  const text = (rule: object): string =>
    JSON.stringify(rule, (_key, value: unknown) =>
      value === undefined || (Array.isArray(value) && value.length === 0) ? undefined : value,
    )
  return [`    ${side}: ${rules.length === 0 ? 'none' : ''}`, ...rules.map((rule) => `      ${text(rule)}`)]
}
