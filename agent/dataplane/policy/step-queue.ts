// SPDX-License-Identifier: Apache-2.0
/** Takes policy into the kernel step by step: none begins before the one before it is all there.
 * Layer: agent/dataplane. */
import { backoffMs } from '#lib/base/backoff.ts'
import type { PolicyRow, PolicyStep, PolicyTable } from '#agent/compile/policy/tables.ts'
import { failure, type Failure, type Outcome, type ReconcileStep } from '../reconcile/step.ts'
import type { AddrTableWriter, HostTableWriter, TableWriter, PlainTableWriter } from './table-writers.ts'

export interface StepQueueOptions {
  /** in the order in which rows are removed when a whole is complete: tables that refer to others first */
  readonly places: {
    readonly [T in PolicyTable]: T extends 'ends' ? AddrTableWriter : T extends 'hosts' ? HostTableWriter : PlainTableWriter
  }
  readonly epoch: { mark(): void }
  /** From what is in the kernel to a whole, so that no packet is judged by half of either. Throws as long as it is
   * not known what is there. */
  readonly fromKernel: (steps: readonly PolicyStep[]) => readonly PolicyStep[]
}

/** And of a whole: it is put off until it is known what is in the kernel; at its end what was not in it goes, then
 * it is done. */
type Step = PolicyStep | { readonly kind: 'whole'; readonly steps: readonly PolicyStep[] } | { readonly kind: 'sweep' | 'end' }

const WHOLE_AGAIN = { firstMs: 1000, maxMs: 300_000 }
/** Rows of one pass, so that others have their turn; but a whole is done at once. */
const ROWS_A_PASS = 20_000

/** A step that fails is tried again; what comes after it waits, and what the kernel has stays. */
export class StepQueue implements ReconcileStep {
  readonly name = 'policy'
  readonly #options: StepQueueOptions
  #steps: Step[] = []
  /** of the step that has begun */
  #unsettled: TableWriter[] = []
  /** those of the last step of learning, until the next step begins */
  #learning: PlainTableWriter[] = []
  #failed = false
  #isStuck = false
  /** that were of no use */
  #wholes = 0
  #wholeNotBefore = -Infinity
  #isWhole = false
  /** a whole has begun */
  #inWhole = false
  /** changes in the kernel since then */
  #writtenOfWhole = 0

  constructor(options: StepQueueOptions) {
    this.#options = options
  }

  /** Everything that was wanted when it began has come into the kernel, and nothing else is there: what is wanted
   * since is known to us. */
  get isWhole(): boolean {
    return this.#isWhole
  }

  /** A step fails and later ones wait for it, which may be what mends it: true when at this time of the clock a whole
   * is to take their place. It is true once; again later each time that a whole is of no use, for it costs as much as
   * a start. */
  takeWholeRequest(now: number): boolean {
    if (!this.#isStuck || now < this.#wholeNotBefore) return false
    this.#wholeNotBefore = now + backoffMs(WHOLE_AGAIN, this.#wholes++)
    return true
  }

  /** `complete`: these steps make the whole, and whatever was to be done before does not matter any more. */
  enqueue(steps: readonly PolicyStep[], complete: boolean): void {
    const { places } = this.#options
    this.#isStuck = !complete && (this.#isStuck || (this.#failed && steps.length > 0))
    if (complete) {
      this.#inWhole = true
      this.#writtenOfWhole = 0
      for (const place of Object.values(places)) place.beginWhole()
      // what fills a map is to make room for what is wanted instead
      this.#unsettled = this.#learning
      for (const place of this.#learning) place.withdraw()
    }
    places.ends.announce(endsOf(steps))
    this.#steps = complete ? [{ kind: 'whole', steps }, { kind: 'sweep' }, { kind: 'end' }] : [...this.#steps, ...steps]
  }

  pending(): boolean {
    return this.#steps.length + this.#unsettled.length > 0
  }

  apply(): Outcome {
    const outcome = this.#apply()
    this.#failed = outcome.failures.length > 0
    this.#isStuck &&= this.#failed
    if (!this.#failed) [this.#wholes, this.#wholeNotBefore] = [0, -Infinity]
    return outcome
  }

  #apply(): Outcome {
    let done = 0
    let rows = 0
    while (this.pending()) {
      const settled = this.#settle()
      done += settled.done
      if (this.#inWhole) this.#writtenOfWhole += settled.done
      if (settled.failures.length > 0) return { done, failures: settled.failures }
      if (!this.#inWhole && rows >= ROWS_A_PASS) break
      try {
        rows += this.#begin()
      } catch (thrown) {
        return { done, failures: [failure('policy', thrown)] }
      }
    }
    return { done, failures: [] }
  }

  /** Of the step that has begun. */
  #settle(): { readonly done: number; readonly failures: readonly Failure[] } {
    let done = 0
    for (const place of [...this.#unsettled]) {
      const applied = place.settle()
      done += applied.done
      if (applied.errors.length > 0) return { done, failures: applied.errors.map((error) => failure('policy', error)) }
      this.#unsettled.shift()
    }
    return { done, failures: [] }
  }

  /** The next step. Returns how many rows it has; throws for a row that no struct can hold, and then it is still the
   * next. */
  #begin(): number {
    const [step] = this.#steps
    for (const place of this.#learning) place.keep()
    this.#learning = []
    const rows = step === undefined ? 0 : this.#stage(step)
    this.#steps.shift()
    return rows
  }

  #stage(step: Step): number {
    const { places, epoch } = this.#options
    switch (step.kind) {
      case 'epoch':
        // of a whole it is not known yet whether anything in the kernel was otherwise
        if (step.epoch === 'next' && !this.#inWhole) epoch.mark()
        return 0
      case 'whole': {
        const steps = this.#options.fromKernel(step.steps)
        places.ends.announceInstead(endsOf(steps), endsOf(step.steps))
        this.#steps.splice(1, 0, ...steps)
        return 0
      }
      case 'sweep':
        this.#unsettled = Object.values(places)
        for (const place of this.#unsettled) place.sweep()
        return 0
      case 'end':
        this.#isWhole = true
        this.#inWhole = false
        if (this.#writtenOfWhole > 0) epoch.mark()
        return 0
      case 'add':
        for (const [table, rows] of byTable(step.rows)) {
          places[table].learn(rows)
          this.#learning.push(places[table])
          this.#unsettled.push(places[table])
        }
        return step.rows.length
      default:
        for (const [table, rows] of byTable<PolicyRow>(step.rows)) {
          places[table].stage(rows, step.kind === 'delete')
          this.#unsettled.push(places[table])
        }
        return step.rows.length
    }
  }
}

function endsOf(steps: readonly PolicyStep[]): readonly PolicyRow[] {
  return steps.flatMap((step) =>
    step.kind === 'reassign' || step.kind === 'switch' ? step.rows.filter(({ table }) => table === 'ends') : [],
  )
}

function byTable<R extends PolicyRow>(rows: readonly R[]): ReadonlyMap<R['table'], readonly R[]> {
  const groups = new Map<R['table'], R[]>()
  for (const row of rows) {
    const group = groups.get(row.table)
    if (group === undefined) groups.set(row.table, [row])
    else group.push(row)
  }
  return groups
}
