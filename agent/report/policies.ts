// SPDX-License-Identifier: Apache-2.0
/** Which policies are not what their authors meant, for log, health and metrics. Layer: agent. */
import { deepEqual } from '#lib/base/deep-equal.ts'
import { rejectedText } from '#lib/base/result.ts'
import { ConditionReporter, reasonsText } from '#lib/obs/condition-reporter.ts'
import type { Health } from '#lib/obs/health.ts'
import type { Log } from '#lib/obs/log.ts'
import { isPolicyMatter } from '#lib/model/kinds.ts'
import { tiersInOrder } from '#lib/model/policy-order.ts'
import { refText, type Ref } from '#lib/model/ref.ts'
import type { ObjectChange, Snapshot } from '#lib/model/snapshot.ts'
import type { Problem, SourceStatus } from '#lib/store/source.ts'
import type { QuotaTable } from '../compile/policy/rulesets/policy-quota.ts'
import type { QuotaExceeded } from '../compile/policy/policy-size.ts'

/** Condition: all policies, and the tiers, sets, profiles and host endpoints they rest on, are in force as they were
 * written last. */
export const POLICIES = 'policy.as-written'

/** in-part: some of its rules are not in force. last-good: that version is in force, for the newer one cannot be read.
 * closed: it cannot be read, and denies everything for the endpoints it selects. no-tier: there is no such tier, and
 * it is closed in the default one. no-room: its namespace wants more of this node's tables than there is, and whatever
 * it selects is closed; a set has no prefix. refused: nothing of it is in force. */
const STATES = ['in-force', 'in-part', 'last-good', 'closed', 'no-tier', 'no-room', 'refused'] as const
export type PolicyState = (typeof STATES)[number]

type Written = Pick<Snapshot, 'policies' | 'tiers' | 'networkSets' | 'profiles' | 'hostEndpoints'>

export interface Wrong {
  readonly state: PolicyState
  readonly reason: string
}

export class PolicyReport {
  readonly #sources = new Map<string, SourceStatus>()
  /** undefined before all is known */
  #snapshot: Written | undefined
  /** by ref */
  readonly #wrong: ConditionReporter<Wrong>
  /** by ref */
  #noRoom: ReadonlyMap<string, string> = new Map()

  constructor({ health, log }: { readonly health: Health; readonly log: Log }) {
    health.expect(POLICIES, 'none')
    this.#wrong = new ConditionReporter<Wrong>({
      health,
      condition: POLICIES,
      reason: (all) => reasonsText(all, ({ reason }) => reason),
      isSame: (before, now) => before.state === now.state,
      found: (policy, { state, reason }) => log.warn({ policy, reason }, `policy.${state}`),
      gone: (policy) => log.info({ policy }, 'policy.recovered'),
    })
  }

  /** What there is, and what changed of it: undefined the first time. Stays a view of it, as the store's is. */
  note(snapshot: Written, changes: readonly ObjectChange[] | undefined): void {
    this.#snapshot = snapshot
    if (changes?.some(({ kind }) => isPolicyMatter(kind)) !== false) this.#say(snapshot)
  }

  /** What a source cannot read. */
  noteSource(source: string, status: SourceStatus): void {
    this.#sources.set(source, status)
    if (this.#snapshot !== undefined) this.#say(this.#snapshot)
  }

  /** All policies that are closed for want of room. */
  noteNoRoom(noRoom: readonly QuotaExceeded[]): void {
    const before = this.#noRoom
    this.#noRoom = new Map(
      noRoom.flatMap((one) => {
        const sets = one.sets ? this.#setsOf(one.namespace) : []
        return [...one.policies, ...sets].map((ref) => [ref, noRoomText(one)] as const)
      }),
    )
    if (this.#snapshot !== undefined && !deepEqual(before, this.#noRoom)) this.#say(this.#snapshot)
  }

  #setsOf(namespace: string): readonly string[] {
    const all = [...(this.#snapshot?.networkSets.values() ?? [])]
    return all.flatMap((set) => (set.namespace === namespace ? [refText(set)] : []))
  }

  /** What the sources cannot read is judged by what there is; false until that is known. */
  get isKnown(): boolean {
    return this.#snapshot !== undefined
  }

  /** By ref. */
  get wrong(): ReadonlyMap<string, Wrong> {
    return this.#wrong.all
  }

  counts(): ReadonlyMap<PolicyState, number> {
    const count = (state: PolicyState): number => [...this.wrong.values()].filter((one) => one.state === state).length
    const all = this.#snapshot === undefined ? 0 : [...written(this.#snapshot)].length
    const inForce = all - (this.wrong.size - count('refused'))
    return new Map(STATES.map((state) => [state, state === 'in-force' ? inForce : count(state)]))
  }

  /** Says what is new. */
  #say(snapshot: Written): void {
    this.#wrong.note(wrongOnes(snapshot, [...this.#sources.values()], this.#noRoom))
  }
}

function* written({ policies, tiers, networkSets, profiles, hostEndpoints }: Written): Generator<Ref> {
  for (const objects of [policies, tiers, networkSets, profiles, hostEndpoints]) yield* objects.values()
}

function wrongOnes(snapshot: Written, sources: readonly SourceStatus[], noRoom: ReadonlyMap<string, string>): Map<string, Wrong> {
  const wrong = new Map<string, Wrong>()
  const known = new Set(tiersInOrder(snapshot.tiers).map(({ name }) => name))
  for (const policy of snapshot.policies.values()) {
    if (!known.has(policy.tier))
      wrong.set(refText(policy), { state: 'no-tier', reason: `there is no Tier ${policy.tier}: closed for all that it selects` })
    else if (policy.closed === true)
      wrong.set(refText(policy), {
        state: 'closed',
        reason: 'cannot be read as a whole, and no good version is known: closed for all that it selects',
      })
  }
  for (const [ref, reason] of noRoom) if (!wrong.has(ref)) wrong.set(ref, { state: 'no-room', reason })
  const problems = sources.flatMap((source) => source.problems).filter(({ rejected }) => isOfPolicy(rejected.ref))
  const firstOf = new Map(problems.toReversed().map((problem) => [problem.rejected.ref, problem]))
  for (const ref of sources.flatMap(({ kept = [] }) => kept)) {
    if (wrong.has(ref) || !isOfPolicy(ref)) continue
    const problem = firstOf.get(ref)
    const why = problem === undefined ? 'cannot be read' : whatOf(problem)
    wrong.set(ref, { state: 'last-good', reason: `${why}: the last good version stays in force` })
  }
  const there = new Set(problems.length === 0 ? [] : [...written(snapshot)].map(refText))
  for (const problem of problems) {
    const { ref } = problem.rejected
    if (wrong.has(ref)) continue
    if (!there.has(ref)) wrong.set(ref, { state: 'refused', reason: `${whatOf(problem)}: nothing of it is in force` })
    else if (problem.inPart === true || /^(Global)?NetworkSet\//.test(ref)) wrong.set(ref, { state: 'in-part', reason: whatOf(problem) })
  }
  return wrong
}

const WHAT: Readonly<Record<QuotaTable, string>> = {
  rules: 'rules',
  ports: 'protocols',
  pages: 'ports',
  bits: 'combinations of peers',
  nets: 'prefixes',
}

/** In whatever line of its namespace one of its rules would be. */
function noRoomText({ namespace, table, sets, most }: QuotaExceeded): string {
  if (sets)
    return `on this node the network sets of namespace ${namespace} have most prefixes, and there is room for ${most} of all of them: none of its sets has a prefix here, and its policies are closed for all that they select here`
  return `on this node the policies of namespace ${namespace} have most ${WHAT[table]}, and there is room for ${most} of all policies: closed for all that it selects here`
}

function isOfPolicy(ref: string): boolean {
  return isPolicyMatter(ref.slice(0, ref.indexOf('/')))
}

function whatOf({ rejected }: Problem): string {
  return rejectedText({ ...rejected, ref: '' })
}
