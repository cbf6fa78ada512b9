// SPDX-License-Identifier: Apache-2.0
/** Endpoints that have more rules than programs look through, for log and health. Layer: agent. */
import { firstFew } from '#lib/base/text/first-few.ts'
import { RULES_PER_BLOCK } from '#lib/base/bpf-constants.ts'
import { ConditionReporter } from '#lib/obs/condition-reporter.ts'
import type { Health } from '#lib/obs/health.ts'
import type { Log } from '#lib/obs/log.ts'
import type { TruncatedRuleLists } from '../compile/policy/policy-size.ts'

/** Condition: programs look at all rules that endpoints of this node have. */
export const LINES = 'policy.whole-lines'

export class RuleLimitReport {
  readonly #most: number
  readonly #cuts: ConditionReporter<TruncatedRuleLists>

  /** `blocks` of a line are looked through. */
  constructor({ health, log, blocks }: { readonly health: Health; readonly log: Log; readonly blocks: number }) {
    this.#most = blocks * RULES_PER_BLOCK
    health.expect(LINES, 'none')
    this.#cuts = new ConditionReporter<TruncatedRuleLists>({
      health,
      condition: LINES,
      reason: (all) => this.#reason([...all.values()]),
      isSame: () => true,
      found: (lines) => log.warn({ lines, most: this.#most }, 'policy.truncated'),
      gone: (lines) => log.info({ lines }, 'policy.whole'),
    })
  }

  /** By endpoint ("Pod/shop/web"), which of its lines, but for staged ones: nothing is denied by those. */
  get endpoints(): ReadonlyMap<string, string> {
    const isReal = (line: string): boolean => !line.startsWith('staged ')
    const real = [...this.#cuts.all.values()].map(({ endpoints, lines }) => ({ endpoints, lines: lines.filter(isReal) }))
    const found = real.filter(({ lines }) => lines.length > 0)
    return new Map(found.flatMap(({ endpoints, lines }) => endpoints.map((ref) => [ref, `${lines.join(', ')} ${this.#outcome}`] as const)))
  }

  /** All there are; says what is new. */
  note(cuts: readonly TruncatedRuleLists[]): void {
    this.#cuts.note(new Map(cuts.map((cut) => [nameOf(cut), cut])))
  }

  get #outcome(): string {
    return `longer than the ${this.#most} rules that programs look at, what comes later is denied`
  }

  #reason(cuts: readonly TruncatedRuleLists[]): string {
    if (cuts.length === 0) return ''
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
