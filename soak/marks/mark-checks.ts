// SPDX-License-Identifier: Apache-2.0
/** What became of marked flows, against the verdicts of the policies' versions. Layer: soak (pure). */
import type { NegativeProbe } from '../../lab/tools/probes.ts'
import type { Check } from '../checks.ts'
import { lags, MARKED_FLOWS, walk, type MarkedFlow, type Truth, type Truths, type Version, type Walk } from './marked-flows.ts'
import type { MarkedResult } from './marked-traffic.ts'

/** A step that may have changed truths, and when it was begun, in ms since 1970. */
export interface Written {
  readonly at: number
  readonly truths: Truths
}

export interface Told {
  readonly written: readonly Written[]
  /** which step was the last before a time */
  readonly stepAt: (time: number) => string
}

export function markChecks(result: MarkedResult, told: Told): Check[] {
  const walks = MARKED_FLOWS.map((mark) => walked(mark, result, told.written))
  const say = (text: string, at: number): string => dated(text, at, told.stepAt)
  const faults = walks.flatMap(({ mark, fresh, open }) =>
    [[mark.id, fresh] as const, ...open.map((one, at) => [`${mark.id}, open flow to port ${mark.ports[at] ?? 0}`, one] as const)].flatMap(
      ([name, { fault }]) => (fault === undefined ? [] : [say(`${name}: ${fault.text}`, fault.at)]),
    ),
  )
  const sent = Object.values(result.sent).reduce((sum, count) => sum + count, 0)
  const turns = walks.reduce((sum, { fresh }) => sum + Math.max(0, fresh.seen.length - 1), 0)
  return [
    {
      name: `${sent} marked datagrams, each a flow of its own, which turned ${turns} times: none judged by half of a change`,
      faults: [...faults, ...Object.entries(result.errors).map(([code, count]) => `${count} could not be sent: ${code}`)],
    },
    followCheck(walks, say),
    closedCheck(result.knocks, told.stepAt),
  ]
}

export function closedCheck(knocks: readonly NegativeProbe[], stepAt: Told['stepAt']): Check {
  const tries = knocks.reduce((sum, knock) => sum + knock.tries, 0)
  return {
    name: `${tries} attempts at what is closed: none got through`,
    faults: [
      ...(tries === 0 ? ['there were none'] : []),
      ...knocks.flatMap(({ to, through, firstAt }) => (through === 0 ? [] : [dated(`${to}: ${through}, first`, firstAt ?? 0, stepAt)])),
    ],
  }
}

function dated(text: string, at: number, stepAt: Told['stepAt']): string {
  return `${text} at ${new Date(at).toISOString().slice(11, 23)}; ${stepAt(at)}`
}

/** ms after which every open flow, and half of them, are judged as new ones are. Programs look closer at each flow
 * every 750 ms in any case: it is by the half that one sees whether the epoch moves, which is at most every 250 ms. */
const [LAST_MS, HALF_MS] = [1500, 250]

function followCheck(walks: readonly Walked[], say: (text: string, at: number) => string): Check {
  const all = walks.flatMap(({ mark, fresh, open, versions }) =>
    open.flatMap((one) => lags(one, fresh, versions).map((lag) => ({ mark, ...lag }))),
  )
  const sorted = all.sort((a, b) => a.ms - b.ms)
  const half = sorted[Math.floor(sorted.length / 2)]?.ms ?? 0
  const late = sorted.filter(({ ms }) => ms > LAST_MS)
  return {
    name: `${sorted.length} open flows were cut: half within ${half} ms of new ones (at most ${HALF_MS}), all within ${sorted.at(-1)?.ms ?? 0} (${LAST_MS})`,
    faults: [
      ...(half > HALF_MS ? ['half of them took longer'] : []),
      ...late.map(({ mark, ms, at }) => say(`${mark.id}: ${ms} ms, new ones kept out`, at)),
    ],
  }
}

interface Walked {
  readonly mark: MarkedFlow
  readonly versions: readonly Version[]
  readonly fresh: Walk
  readonly open: readonly Walk[]
}

function walked(mark: MarkedFlow, { runs, sent, end }: MarkedResult, written: readonly Written[]): Walked {
  const versions = versionsOf(mark.truth, written)
  const of = (id: string, count: number | undefined): Walk => walk({ runs: runs[id] ?? [], sent: count, end }, versions)
  const open = mark.ports.map((_, at) => of(`${mark.id}/${at}`, undefined))
  return { mark, versions, fresh: of(mark.id, sent[mark.id] ?? 0), open }
}

/** From the first step on, which is before anything was sent. */
function versionsOf(truth: Truth | boolean, written: readonly Written[]): Version[] {
  if (typeof truth === 'boolean') return [{ at: 0, value: truth }]
  const all = [{ at: 0, value: true }, ...written.map(({ at, truths }) => ({ at, value: truths[truth] }))]
  return all.filter(({ value }, at) => at === 0 || value !== all[at - 1]?.value)
}
