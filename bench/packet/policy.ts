// SPDX-License-Identifier: Apache-2.0
/** What the verdict of a new flow costs, by number and kind of rules; and beside it what one rule after the other
 * would. Layer: bench. */
import { formatAddr } from '#lib/base/ip.ts'
import { median, minimum, quantile } from '../base/statistics.ts'
import { at } from '../../testkit/packets/cluster.ts'
import type { Family } from '../../testkit/packets/cluster.ts'
import type { PacketFigure } from './result.ts'
import { Linear } from './linear.ts'
import type { Bench, Tally } from './measure.ts'
import { measureNew } from './measure.ts'
import { firstSender } from './node.ts'
import { PORT, policyWorld } from './policy-world.ts'
import type { PolicySubject } from './policy-world.ts'
import { REDIRECT, synOf } from './stories.ts'

/** New flows to each subject in turn, round by round. Their figures are what they cost more than those without
 * rules. */
export async function policyFigures(bench: Bench, f: Family, count: number): Promise<PacketFigure[]> {
  const world = policyWorld(f, firstSender(f))
  const bytes = bench.node.take(world.steps)
  const measured = world.subjects.map((subject) => ({ subject, tally: tallyOf(f, subject) }))
  // the first flows of a table find its entries in order of memory: they do not count
  for (const { tally } of measured) await oneRound(bench, { ...tally, programs: [], baselines: [] }, count)
  for (let round = 0; round < bench.rounds; round++) for (const { tally } of measured) await oneRound(bench, tally, count)
  const built = `all in ${(bytes / 2 ** 20).toFixed(1)} MiB, compiled in ${world.compileMs.toFixed(0)} ms`
  const plain = (enters: PolicySubject['enters']): Tally | undefined =>
    measured.find(({ subject }) => subject.id === undefined && subject.enters === enters)?.tally
  return [
    ...measured.flatMap(({ subject, tally }) => {
      const without = plain(subject.enters)
      return subject.id === undefined || without === undefined
        ? []
        : [figureOf(subject.id, `${subject.note}; ${built}`, { tally, without })]
    }),
    ...(await linearFigures(bench, f)),
  ]
}

async function oneRound(bench: Bench, tally: Tally, count: number): Promise<void> {
  measureNew(bench, [tally], { count, step: 0 })
  bench.node.forget(await bench.node.flows())
}

function tallyOf(f: Family, { to, enters }: PolicySubject): Tally {
  const from = enters === 'from_workload' ? firstSender(f) : outsideSender(f)
  const packet = synOf({ from: at(from, 20_000), to: at(formatAddr(to), PORT) })
  return { hook: { program: enters, packet, action: REDIRECT }, programs: [], baselines: [] }
}

/** Address of the first of those outside. */
function outsideSender(f: Family): string {
  return f.v4 ? '192.168.60.1' : 'fd00:60::1'
}

function figureOf(id: string, note: string, { tally, without }: { readonly tally: Tally; readonly without: Tally }): PacketFigure {
  const net = minimum(tally.programs) - minimum(without.programs)
  const differences = tally.programs.map((ns, round) => ns - (without.programs[round] ?? 0))
  return {
    id,
    note,
    net,
    median: median(differences),
    p90: quantile(differences, 0.9),
    baseline: minimum(without.programs),
    hooks: [{ program: tally.hook.program, net }],
  }
}

const REPEAT = 2000

/** The walk alone, of the packet whose rule is the last. */
async function linearFigures({ wrapper, rounds }: Bench, f: Family): Promise<PacketFigure[]> {
  const linear = await Linear.load()
  const packet = synOf({ from: at(firstSender(f), 20_000), to: at(f.pod, PORT) })
  const figures = [1, 10, 100, 1000].map((count) => {
    linear.fill(count, PORT)
    linear.member(count - 1, firstSender(f), true)
    const [programs, baselines]: [number[], number[]] = [[], []]
    for (let round = 0; round < rounds; round++) {
      baselines.push(wrapper.run(wrapper.own('nothing'), { packet }, REPEAT).ns)
      programs.push(wrapper.run(linear.program, { packet }, REPEAT).ns)
    }
    linear.member(count - 1, firstSender(f), false)
    const differences = programs.map((ns, round) => ns - (baselines[round] ?? 0))
    const net = minimum(programs) - minimum(baselines)
    return {
      id: `linear.selector.${count}${f.v4 ? '' : '.v6'}`,
      note: 'one rule after the other, each with a look into its set of addresses; the last holds',
      net,
      median: median(differences),
      p90: quantile(differences, 0.9),
      baseline: minimum(baselines),
      hooks: [{ program: 'linear', net }],
    }
  })
  linear.close()
  return figures
}
