// SPDX-License-Identifier: Apache-2.0
/** Endpoints that have more rules than programs look through, for log and health. Layer: agent. */
import { firstFew } from '#lib/base/first-few.ts'
import { RULES_PER_BLOCK } from '#lib/base/bpf-constants.ts'
import type { Health } from '#lib/obs/health.ts'
import type { Log } from '#lib/obs/log.ts'
import type { TruncatedRuleLists } from '../compile/policy/policy-size.ts'

/** Condition: programs look at all rules that endpoints of this node have. */
export const LINES = 'policy.whole-lines'

export class RuleLimitReport {
  readonly #health: Health
  readonly #log: Log
  readonly #most: number
  /** in the log */
  #said: ReadonlySet<string> = new Set()
  #cuts: readonly TruncatedRuleLists[] = []

  /** `blocks` of a line are looked through. */
  constructor({ health, log, blocks }: { readonly health: Health; readonly log: Log; readonly blocks: number }) {
    this.#health = health
    this.#log = log
    this.#most = blocks * RULES_PER_BLOCK
    health.expect(LINES, 'none')
  }

  /** By endpoint ("Pod/shop/web"), which of its lines, but for staged ones: nothing is denied by those. */
  get endpoints(): ReadonlyMap<string, string> {
    const real = this.#cuts.map(({ endpoints, lines }) => ({ endpoints, lines: lines.filter((line) => !line.startsWith('staged ')) }))
    const found = real.filter(({ lines }) => lines.length > 0)
    return new Map(found.flatMap(({ endpoints, lines }) => endpoints.map((ref) => [ref, `${lines.join(', ')} ${this.#outcome}`] as const)))
  }

  /** All there are; says what is new. */
  note(cuts: readonly TruncatedRuleLists[]): void {
    this.#cuts = cuts
    const before = this.#said
    this.#said = new Set(cuts.map(nameOf))
    for (const lines of this.#said) if (!before.has(lines)) this.#log.warn({ lines, most: this.#most }, 'policy.cut')
    for (const lines of before) if (!this.#said.has(lines)) this.#log.info({ lines }, 'policy.whole')
    if (cuts.length === 0) this.#health.pass(LINES)
    else this.#health.fail(LINES, this.#reason(cuts))
  }

  get #outcome(): string {
    return `longer than the ${this.#most} rules that programs look at, what comes later is denied`
  }

  #reason(cuts: readonly TruncatedRuleLists[]): string {
    const texts = cuts
      .map((cut) => (cut.endpoints.length > 1 ? `${nameOf(cut)} and ${cut.endpoints.length - 1} alike` : nameOf(cut)))
      .sort()
    return `${this.#outcome}: ${firstFew(texts)}`
  }
}

/** "ingress of Pod/shop/web" */
function nameOf({ endpoints, lines }: TruncatedRuleLists): string {
  return `${lines.join(', ')} of ${endpoints[0] ?? ''}`
}
