// SPDX-License-Identifier: Apache-2.0
/** Marked flows: pairs that every version of the policies judges alike, and whether they were. Layer: soak (pure).
 *
 * The two of a pair have one end that is judged, one family and one truth that says whether they may be: what the
 * steps of a change switch in one write. Flows to two endpoints, of two families, or judged at both ends are
 * switched in several writes, and may differ meanwhile. */
import type { Run } from '../../lab/tools/probes.ts'
import { addressOf, FAMILIES } from '../../testkit/lab/manifests.ts'

/** Where it is written whether the flows of a pair may be. Each truth has one place of its own: a change of policies
 * and one of labels that an agent sees together are taken in an order of its own. */
export const TRUTHS = ['rules', 'egress', 'peer', 'net', 'gate'] as const
export type Truth = (typeof TRUTHS)[number]
export type Truths = Readonly<Record<Truth, boolean>>
export const ALL_TRUE: Truths = { rules: true, egress: true, peer: true, net: true, gate: true }

/** Ports of pairs, of flows that are always allowed, and of such that never are: of UDP to counting receivers, and of
 * echo servers. */
export const PAIR = [9001, 9002] as const
export const ALWAYS = [9004, 9005] as const
export const NEVER = [9003, 9006] as const
export const NEVER_ECHO = 8082

/** Pods that only have to do with marked flows. */
export const SENDERS = ['a-4', 'a-6', 'b-5', 'c-5'] as const
export const SINKS = ['b-4', 'c-4', 'a-5'] as const

export interface MarkedFlow {
  readonly id: string
  readonly from: string
  readonly to: string
  readonly address: string
  readonly ports: readonly [number, number]
  /** a boolean: in every version */
  readonly truth: Truth | boolean
}

export const MARKED_FLOWS: readonly MarkedFlow[] = [
  // by rules of b-4, for its label, for its address in a network set; by c-4's own label; by rules of the sender
  ...marks({ from: 'a-4', to: 'b-4', ports: PAIR, truth: 'rules' }),
  ...marks({ from: 'b-5', to: 'b-4', ports: PAIR, truth: 'peer' }),
  ...marks({ from: 'a-6', to: 'b-4', ports: PAIR, truth: 'net' }),
  ...marks({ from: 'a-4', to: 'c-4', ports: PAIR, truth: 'gate' }),
  ...marks({ from: 'c-5', to: 'a-5', ports: PAIR, truth: 'egress' }),
  ...marks({ from: 'a-4', to: 'b-4', ports: ALWAYS, truth: true }),
  ...marks({ from: 'c-5', to: 'c-4', ports: ALWAYS, truth: true }),
  ...marks({ from: 'a-6', to: 'b-4', ports: NEVER, truth: false }),
  ...marks({ from: 'b-5', to: 'c-4', ports: NEVER, truth: false }),
]

function marks(of: Omit<MarkedFlow, 'id' | 'address'>): MarkedFlow[] {
  return FAMILIES.map((family) => ({ ...of, id: `${of.from}>${of.to}:${of.ports[0]}v${family}`, address: addressOf(of.to, family) }))
}

/** From when on a truth was so, in ms since 1970; the first is from the beginning. Neighbours differ. */
export interface Version {
  readonly at: number
  readonly value: boolean
}

/** Datagrams one after the other that all came through, or did not. Of those that did not it is known between which
 * others they were sent. */
interface Stretch {
  readonly value: boolean
  /** numbers of the first and of the last */
  readonly first: number
  readonly last: number
  /** ms since 1970 when the first was sent, at the earliest and at the latest */
  readonly since: number
  readonly from: number
  /** when the last was sent */
  readonly to: number
}

/** ms without a datagram by which one can tell that a stream is kept out */
const SILENT_MS = 600

export interface Seen {
  readonly runs: readonly Run[]
  /** undefined: not counted */
  readonly sent: number | undefined
  /** ms since 1970 */
  readonly end: number
}

/** Of one sequence: when each version was first seen to be in force, and what no version explains. */
export interface Walk {
  readonly seen: readonly { readonly version: number; readonly since: number; readonly until: number }[]
  readonly fault: { readonly text: string; readonly at: number } | undefined
}

/** Packets are judged by one version after the other, never by an older one again: each stretch needs a version that
 * is not older than that of the one before, and that had been written. Where the rules are half of one and half of
 * another there is a stretch too many. */
export function walk(seen: Seen, versions: readonly Version[]): Walk {
  const steps: { version: number; since: number; until: number }[] = []
  let version = 0
  for (const { value, first, last, since, from, to } of stretches(seen)) {
    const found = versions.findIndex((one, at) => at >= version && one.value === value && (at === 0 || one.at <= from))
    if (found < 0)
      return {
        seen: steps,
        fault: { text: `numbers ${first} to ${last} were ${value ? 'let through' : 'kept out'}, as before the last change`, at: from },
      }
    version = found
    steps.push({ version, since, until: to })
  }
  const last = versions.at(-1)
  const fault = versions[version]?.value === last?.value ? undefined : { text: 'not as in the last version in the end', at: seen.end }
  return { seen: steps, fault }
}

function stretches({ runs, sent, end }: Seen): Stretch[] {
  const result: Stretch[] = []
  let next = 0
  let before: number | undefined
  for (const [from, to, firstAt, lastAt] of runs) {
    if (from > next) result.push({ value: false, first: next, last: from - 1, since: before ?? firstAt, from: firstAt, to: firstAt })
    result.push({ value: true, first: from, last: to, since: firstAt, from: firstAt, to: lastAt })
    next = to + 1
    before = lastAt
  }
  const isMore = sent === undefined ? (before ?? 0) < end - SILENT_MS : next < sent
  if (isMore) result.push({ value: false, first: next, last: (sent ?? next) - 1, since: before ?? end, from: end, to: end })
  return result
}

/** How long each open flow that was let through before was let through after new ones were kept out, in ms, and
 * since when these were. What is open again before the epoch has moved need not be cut. */
export function lags(open: Walk, fresh: Walk, versions: readonly Version[]): { readonly ms: number; readonly at: number }[] {
  const isOpen = ({ version }: { readonly version: number }): boolean => versions[version]?.value === true
  return open.seen.filter(isOpen).flatMap(({ since, until }) => {
    // by time: which of several versions of one value let a flow through is not known
    const at = fresh.seen.findIndex((one) => !isOpen(one) && one.since > since && one.since <= until)
    const [closed, opened] = [fresh.seen[at], fresh.seen[at + 1]]
    if (closed === undefined) return []
    return [{ ms: Math.min(until, opened?.since ?? until) - closed.since, at: closed.since }]
  })
}
