// SPDX-License-Identifier: Apache-2.0
/** Steps one after the other, each looked at before and after. Layer: upgrade. */
import { UnreachableError } from '#lib/api/errors.ts'
import type { Clock } from '#lib/base/clock.ts'
import { errorText, NetplaneError } from '#lib/base/errors.ts'
import { StepFailedError } from '../storage/options.ts'
import type { Step } from './step.ts'

export interface StepResult {
  readonly name: string
  /** `before`: there was nothing to do. `stopped`: the steps after it were not begun */
  readonly outcome: 'before' | 'done' | 'stopped'
  /** why it stopped, a sentence each */
  readonly problems: readonly string[]
  /** of a step that was only looked at: what is still to come, a sentence each */
  readonly left?: readonly string[]
}

export interface RunInput {
  readonly clock: Clock
  readonly steps: readonly Step[]
  readonly signal: AbortSignal
  /** of a step that has something to do; empty: it begins */
  readonly tell: (step: Step, text: string) => void
  /** before each step; throws StepFailedError where it must not be begun */
  readonly before: (signal: AbortSignal) => Promise<void>
}

/** An API server that is begun anew is away for so long. */
const AWAY_TRIES = 60
const AWAY_MS = 2000

/** Ends with the first step that stops. */
export async function runSteps({ clock, steps, signal, tell, before }: RunInput): Promise<readonly StepResult[]> {
  const results: StepResult[] = []
  for (const step of steps) {
    const tellOf = (text: string): void => {
      tell(step, text)
    }
    const result = await untilAnswered(clock, signal, () => endOf({ step, before }, signal, tellOf))
    results.push(result)
    if (result.outcome === 'stopped') break
  }
  return results
}

/** A server that does not answer is asked again. */
async function untilAnswered(clock: Clock, signal: AbortSignal, run: () => Promise<StepResult>): Promise<StepResult> {
  for (let tries = 1; ; tries++) {
    try {
      return await run()
    } catch (thrown) {
      if (!(thrown instanceof UnreachableError) || tries === AWAY_TRIES) throw thrown
      await clock.sleep(AWAY_MS, signal)
    }
  }
}

/** What a step is refused with is why it stopped, and so is what cut it off. */
async function endOf(
  { step, before }: Pick<RunInput, 'before'> & { readonly step: Step },
  signal: AbortSignal,
  tell: (text: string) => void,
): Promise<StepResult> {
  try {
    await before(signal)
    return await runStep(step, signal, tell)
  } catch (thrown) {
    const reason: unknown = signal.aborted ? signal.reason : undefined
    if (reason instanceof StepFailedError) return { name: step.name, outcome: 'stopped', problems: reason.reasons }
    if (signal.aborted || thrown instanceof UnreachableError || !(thrown instanceof NetplaneError)) throw thrown
    const problems = thrown instanceof StepFailedError ? thrown.reasons : [errorText(thrown)]
    return { name: step.name, outcome: 'stopped', problems }
  }
}

async function runStep(step: Step, signal: AbortSignal, tell: (text: string) => void): Promise<StepResult> {
  const { name } = step
  const before = await step.look(signal)
  if (before.isDone) {
    if (before.found !== undefined) {
      tell('')
      tell(before.found)
    }
    return { name, outcome: 'before', problems: [] }
  }
  if (before.problems.length > 0) return { name, outcome: 'stopped', problems: before.problems }
  tell('')
  await step.run(signal, tell)
  const { isDone, problems, left = [] } = await step.look(signal)
  if (isDone) return { name, outcome: 'done', problems: [] }
  const [first = `${name} is not done, and does not say why`, ...more] = [...problems, ...left]
  return { name, outcome: 'stopped', problems: [first, ...more] }
}
