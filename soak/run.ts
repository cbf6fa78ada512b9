// SPDX-License-Identifier: Apache-2.0
/** The course of every form of the soak: what is there is noted, changes go on until the time is over, and then
 * everything is looked at. Layer: soak. */
import { systemClock } from '#lib/base/clock.ts'
import { downCheck, holdingsCheck, leakCheck, logCheck, restartCheck, type Check, type Soaked } from './checks.ts'
import type { SoakRun } from './scenario.ts'
import type { Holdings, SoakedNode } from './node.ts'

/** Steps after which everything is compared. */
export const COMPARED_EVERY = 25
const TOLD_EVERY_MS = 30_000

export interface ChangePlan<Step> {
  /** the node whose agent is never killed */
  readonly survivor: string
  next(): Step
  /** ms until the next */
  pause(): number
  /** those that end it: back to what can be compared with the beginning */
  last(): readonly Step[]
}

/** A lab and how a step is done to it. Both throw SoakError for what is not as it should be. */
export interface Changed<Step> extends Soaked {
  node(name: string): SoakedNode
  perform(step: Step): Promise<void>
  /** what else has been counted so far, after "; " in the line about steps; empty: nothing */
  tally(): string
}

export class ScenarioRun<Step extends { readonly kind: string }> {
  readonly #soak: Changed<Step>
  readonly #plan: ChangePlan<Step>
  readonly #run: SoakRun<Step>
  readonly #before = new Map<string, readonly string[]>()
  readonly #samples: Holdings[] = []

  private constructor(soak: Changed<Step>, plan: ChangePlan<Step>, run: SoakRun<Step>) {
    this.#soak = soak
    this.#plan = plan
    this.#run = run
  }

  /** Waits for the lab to be as wanted, and notes what there is. */
  static async begin<Step extends { readonly kind: string }>(
    soak: Changed<Step>,
    plan: ChangePlan<Step>,
    run: SoakRun<Step>,
  ): Promise<ScenarioRun<Step>> {
    const course = new ScenarioRun(soak, plan, run)
    await soak.settle()
    for (const node of soak.nodes) course.#before.set(node.name, await soak.belongings(node))
    run.say(`.. ${run.minutes} minutes of changes, seed ${run.seed}; the agent of node ${plan.survivor} is never killed`)
    return course
  }

  /** Step after step until the time is over, then the last ones. */
  async change(): Promise<void> {
    const { history, minutes, signal } = this.#run
    const end = systemClock.now() + minutes * 60_000
    let told = systemClock.now()
    while (systemClock.now() < end) {
      const step = this.#plan.next()
      history.add(step)
      await this.#soak.perform(step)
      await systemClock.sleep(this.#plan.pause(), signal)
      if (history.count % COMPARED_EVERY === 0) await this.#compare()
      if (systemClock.now() > told + TOLD_EVERY_MS) {
        told = systemClock.now()
        this.#tell()
      }
    }
    for (const step of this.#plan.last()) await this.#soak.perform(step)
    await this.#compare()
  }

  /** What holds of a lab in which nothing changes any more. The lab is gone afterwards. `isOurs`: lines of logs that
   * speak of what was done to the agent. */
  async *endChecks(isOurs?: (line: unknown) => boolean): AsyncGenerator<Check> {
    const { survivor } = this.#plan
    yield await restartCheck(this.#soak)
    yield holdingsCheck(survivor, this.#samples, await this.#freshHoldings())
    yield await leakCheck(this.#soak, this.#before)
    yield logCheck(this.#soak.nodes, isOurs)
    yield await downCheck(this.#soak)
  }

  /** Of an agent that has just started, once it holds no more than a second before: what stands by behind programs
   * comes one by one. */
  async #freshHoldings(): Promise<Holdings> {
    const holdings = (): Holdings => this.#soak.node(this.#plan.survivor).holdings()
    for (let before = holdings(), tries = 1; ; tries++) {
      await systemClock.sleep(1000, this.#run.signal)
      const now = holdings()
      if (now.descriptors <= before.descriptors || tries === 20) return now
      before = now
    }
  }

  async #compare(): Promise<void> {
    await this.#soak.settle()
    this.#samples.push(this.#soak.node(this.#plan.survivor).holdings())
  }

  #tell(): void {
    const { history, say } = this.#run
    const agent = `the agent of ${this.#plan.survivor} has ${this.#samples.at(-1)?.residentMb ?? 0} MB`
    say(`.. ${[`${history.count} steps: ${history.summary()}`, this.#soak.tally(), agent].filter((part) => part !== '').join('; ')}`)
  }
}
