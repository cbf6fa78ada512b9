// SPDX-License-Identifier: Apache-2.0
/** Rounds of program and baseline in turn, and what comes out of them. Layer: bench. */
import { InternalError } from '#lib/base/errors.ts'
import { median, minimum, quantile } from '../base/statistics.ts'
import type { PacketFigure } from './result.ts'
import type { Node } from './node.ts'
import type { Hook, Story } from './stories.ts'
import type { Subject, Wrapper } from './wrapper.ts'

const WARM_UP = 200
const AT_A_TIME = 500
const UNDO_REPEAT = 5000

export interface Bench {
  readonly node: Node
  readonly wrapper: Wrapper
  readonly rounds: number
}

/** What the rounds of one hook have shown so far. */
export interface Tally {
  readonly hook: Hook
  readonly programs: number[]
  readonly baselines: number[]
}

export function newTallies(story: Story): Tally[] {
  return story.hooks.map((hook) => ({ hook, programs: [], baselines: [] }))
}

/** One round of a flow that is there already. */
export function measureEstablished(bench: Bench, tally: Tally, repeat: number): void {
  const { wrapper } = bench
  const subject = { packet: tally.hook.packet, mark: tally.hook.mark ?? 0 }
  runHook(bench, tally.hook, { subject, repeat: WARM_UP })
  tally.baselines.push(wrapper.run(wrapper.own('nothing'), subject, repeat).ns)
  tally.programs.push(runHook(bench, tally.hook, { subject, repeat }))
}

/** One round of new flows, `flows.count` of them from `flows.step` addresses further on. They go through the hooks a
 * few at a time, so that a hook meets what the one before it has just made while that is still in the cache, as it
 * is for a real packet. The round's figure is its median batch's: what else runs on the machine interrupts some
 * batches, and would be most of what a mean differs by. */
export function measureNew(bench: Bench, tallies: readonly Tally[], flows: { readonly count: number; readonly step: number }): void {
  const { wrapper } = bench
  const batches = tallies.map(() => ({ programs: new Array<number>(), baselines: new Array<number>() }))
  for (let next = 0; next < flows.count; next += AT_A_TIME) {
    for (const [index, { hook }] of tallies.entries()) {
      const subject = { packet: fromFurther(hook.packet, flows.step), mark: hook.mark ?? 0, flows: flows.count, next }
      batches[index]?.baselines.push(wrapper.run(wrapper.own('nothing'), subject, AT_A_TIME).ns)
      batches[index]?.programs.push(runHook(bench, hook, { subject, repeat: AT_A_TIME }))
    }
  }
  for (const [index, tally] of tallies.entries()) {
    tally.baselines.push(median(batches[index]?.baselines ?? []))
    tally.programs.push(median(batches[index]?.programs ?? []))
  }
}

/** Throws InternalError when the program does not do with the packet what the story says. */
function runHook(bench: Bench, hook: Hook, run: { readonly subject: Subject; readonly repeat: number }): number {
  const { ns, action } = bench.wrapper.run(bench.node.program(hook.program), run.subject, run.repeat)
  if (action !== hook.action) throw new InternalError(`${hook.program} ended with action ${action} instead of ${hook.action}`)
  return ns
}

/** The packet from an address that lies `step` after its own. Checksums are left: no program looks at them. */
function fromFurther(packet: Uint8Array, step: number): Uint8Array {
  const copy = Buffer.from(packet)
  const at = copy.readUInt16BE(12) === 0x0800 ? 26 : 34
  copy.writeUInt32BE(copy.readUInt32BE(at) + step, at)
  return copy
}

/** ns of taking a tunnel header off again, which the wrapper does and no story is charged for. */
export function undoCost(bench: Bench, packet: Uint8Array): number {
  const { wrapper } = bench
  const pairs: number[] = []
  const shares: number[] = []
  for (let round = 0; round < bench.rounds; round++) {
    const nothing = wrapper.run(wrapper.own('nothing'), { packet }, UNDO_REPEAT).ns
    pairs.push(wrapper.run(wrapper.own('pair'), { packet }, UNDO_REPEAT).ns - nothing)
    shares.push(wrapper.undoShare({ packet }, UNDO_REPEAT))
  }
  return median(pairs) * median(shares)
}

/** `undo`: what {@link undoCost} says, for the hooks that encapsulate. */
export function figureOf(story: Story, tallies: readonly Tally[], undo = 0): PacketFigure {
  const uncharged = (hook: Hook): number => (hook.encapsulates === true ? undo : 0)
  const hooks = tallies.map(({ hook, programs, baselines }) => ({
    program: hook.program,
    net: minimum(programs) - minimum(baselines) - uncharged(hook),
  }))
  const differences = differencesOf(tallies, uncharged)
  return {
    id: story.id,
    note: story.note,
    net: sum(hooks.map((hook) => hook.net)),
    median: median(differences),
    p90: quantile(differences, 0.9),
    baseline: minimum(tallies[0]?.baselines ?? []),
    hooks,
  }
}

/** Of rounds in a table whose entries have been used before: of all but the first. */
export function usedMedian(tallies: readonly Tally[]): number {
  return median(differencesOf(tallies).slice(1))
}

/** Program minus baseline, round by round, hooks added up. */
function differencesOf(tallies: readonly Tally[], uncharged: (hook: Hook) => number = () => 0): number[] {
  return (tallies[0]?.programs ?? []).map((_, round) =>
    sum(tallies.map(({ hook, programs, baselines }) => (programs[round] ?? 0) - (baselines[round] ?? 0) - uncharged(hook))),
  )
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
