// SPDX-License-Identifier: Apache-2.0
/** Which policies are not what their authors meant, for log, health and metrics. Layer: agent. */
import type { Health } from '#lib/obs/health.ts'
import type { Log } from '#lib/obs/log.ts'
import { tiersInOrder } from '#lib/model/policy-order.ts'
import { refText } from '#lib/model/ref.ts'
import { isPolicyKind, type ObjectChange, type Snapshot } from '#lib/model/snapshot.ts'

/** Condition: all policies are in force as they stand. */
export const POLICIES = 'policy.as-written'

/** closed: it cannot be read, and denies everything to whom it selects. no-tier: there is no such tier, so it does nothing. */
const STATES = ['in-force', 'closed', 'no-tier'] as const
export type PolicyState = (typeof STATES)[number]

const NAMED = 5

export class PolicyBook {
  readonly #health: Health
  readonly #log: Log
  /** by ref */
  #wrong: ReadonlyMap<string, { readonly state: PolicyState; readonly reason: string }> = new Map()
  #all = 0

  constructor({ health, log }: { readonly health: Health; readonly log: Log }) {
    this.#health = health
    this.#log = log
    health.expect(POLICIES, 'none')
  }

  /** Says what is new. `changes`: undefined the first time. */
  note(snapshot: Pick<Snapshot, 'policies' | 'tiers'>, changes: readonly ObjectChange[] | undefined): void {
    if (changes?.some(({ kind }) => isPolicyKind(kind) || kind === 'Tier') === false) return
    const before = this.#wrong
    this.#all = snapshot.policies.size
    this.#wrong = wrongOnes(snapshot)
    for (const [policy, { state, reason }] of this.#wrong)
      if (before.get(policy)?.state !== state) this.#log.warn({ policy, reason }, `policy.${state}`)
    for (const policy of before.keys()) if (!this.#wrong.has(policy)) this.#log.info({ policy }, 'policy.mended')
    this.#sayHealth()
  }

  counts(): ReadonlyMap<PolicyState, number> {
    const wrong = [...this.#wrong.values()]
    const count = (state: PolicyState): number => wrong.filter((one) => one.state === state).length
    return new Map(STATES.map((state) => [state, state === 'in-force' ? this.#all - wrong.length : count(state)]))
  }

  #sayHealth(): void {
    if (this.#wrong.size === 0) {
      this.#health.pass(POLICIES)
      return
    }
    const named = [...this.#wrong].slice(0, NAMED).map(([policy, { reason }]) => `${policy}: ${reason}`)
    const more = this.#wrong.size > NAMED ? ` and ${this.#wrong.size - NAMED} more` : ''
    this.#health.fail(POLICIES, named.join('; ') + more)
  }
}

function wrongOnes({ policies, tiers }: Pick<Snapshot, 'policies' | 'tiers'>): Map<string, { state: PolicyState; reason: string }> {
  const known = new Set(tiersInOrder(tiers).map(({ name }) => name))
  const wrong = new Map<string, { state: PolicyState; reason: string }>()
  for (const policy of policies.values()) {
    if (!known.has(policy.tier))
      wrong.set(refText(policy), { state: 'no-tier', reason: `there is no Tier ${policy.tier}: the policy does nothing` })
    else if (policy.closed === true)
      wrong.set(refText(policy), {
        state: 'closed',
        reason: 'cannot be read as a whole, and no good version is known: closed for all that it selects',
      })
  }
  return wrong
}
