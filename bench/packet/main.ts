// SPDX-License-Identifier: Apache-2.0
/** Packet cost: to be run in a network namespace of its own; writes its figures to standard output as JSON.
 * Layer: bench. */
import { release } from 'node:os'
import { setUpNamespace } from '../../testkit/packets/runner.ts'
import type { Features } from '../../testkit/packets/runner.ts'
import type { PacketFigure } from './result.ts'
import type { Bench, Tally } from './measure.ts'
import { figureOf, measureEstablished, measureNew, newTallies, undoCost, usedMedian } from './measure.ts'
import { Node } from './node.ts'
import type { Story } from './stories.ts'
import { families } from '../../testkit/packets/cluster.ts'
import { establishedStories, newStories } from './stories.ts'
import { policyFigures } from './policy.ts'
import { Wrapper } from './wrapper.ts'
import { xdpFigures } from './xdp.ts'

/** as the flow table is by default */
const FLOW_TABLE = 512_000
/** new flows a round */
const FLOWS = 30_000
/** repeats a round of an established flow */
const REPEAT = 20_000
/** what the undo is measured with; IPv6 has 20 more, which makes no difference */
const TUNNEL_BYTES = 50

/** All stories' rounds in turn, so that a bad moment of the machine hits each of them a little; and what it costs at
 * the most that packets and bytes of flows are counted. */
function establishedFigures(bench: Bench, stories: readonly Story[]): PacketFigure[] {
  for (const story of stories) {
    for (const { program, packet } of story.opening) bench.node.program(program).testRun({ data: packet })
  }
  const measured = stories.map((story) => ({ story, tallies: newTallies(story), counted: newTallies(story) }))
  for (let round = 0; round < bench.rounds; round++) {
    for (const { tallies, counted } of measured) {
      for (const tally of tallies) measureEstablished(bench, tally, REPEAT)
      bench.node.count(true)
      for (const tally of counted) measureEstablished(bench, tally, REPEAT)
      bench.node.count(false)
    }
  }
  const undo = undoCost(bench, stories[0]?.hooks[0]?.packet ?? new Uint8Array())
  const pairs = measured.map(({ story, tallies, counted }) => [figureOf(story, tallies, undo), figureOf(story, counted, undo)] as const)
  return [...pairs.map(([figure]) => figure), accountingFigure(pairs)]
}

function accountingFigure(pairs: readonly (readonly [PacketFigure, PacketFigure])[]): PacketFigure {
  const costs = pairs.map(([plain, counted]) => ({ ...counted, net: counted.net - plain.net, median: counted.median - plain.median }))
  const worst = costs.reduce((most, one) => (one.net > most.net ? one : most))
  return {
    ...worst,
    id: `accounting${worst.id.endsWith('.v6') ? '.v6' : ''}`,
    note: `counting packets and bytes: ${worst.id}`,
    p90: worst.median,
  }
}

/** A table of its own for each story, since the first to use one finds its entries in order of memory. Between rounds
 * it forgets the flows, so that they are new. */
async function newFigures(rounds: number, story: Story): Promise<PacketFigure[]> {
  const bench = await newBench(rounds)
  const tallies = newTallies(story)
  let made: { readonly keys: Buffer; readonly count: number } | undefined
  for (let round = 0; round < rounds; round++) {
    measureNew(bench, tallies, { count: FLOWS, step: 0 })
    made ??= await bench.node.flows()
    bench.node.forget(made)
  }
  const figures = [{ ...figureOf(story, tallies), used: usedMedian(tallies) }, fullFigure(bench, story)]
  close(bench)
  return figures
}

/** rounds that fill the flow table, with one entry a flow */
const FILLING = Math.ceil(FLOW_TABLE / FLOWS)

/** With a table that is full the flows of every round must be others: each round starts from further addresses. The
 * table is full of flows that these programs have entered, which make room for the next. */
function fullFigure(bench: Bench, story: Story): PacketFigure {
  const tallies = newTallies(story)
  const round = (at: number, into: readonly Tally[]): void => {
    measureNew(bench, into, { count: FLOWS, step: (at + 1) * 64 })
  }
  for (let at = 0; at < FILLING; at++) round(at, newTallies(story))
  for (let at = 0; at < bench.rounds; at++) round(FILLING + at, tallies)
  return { ...figureOf(story, tallies), id: story.id.replace('.new', '.new-full') }
}

function featuresOf(kernel: string): Features {
  const [major = 0, minor = 0] = kernel.split('.').map(Number)
  const since = (wanted: number): boolean => major > 5 || (major === 5 && minor >= wanted)
  return { redirectPeer: since(10), redirectNeigh: since(10), coarseClock: since(11), jiffies: since(6), netnsCookies: since(7) }
}

async function newBench(rounds: number): Promise<Bench> {
  return { node: await Node.load(featuresOf(release()), FLOW_TABLE), wrapper: await Wrapper.load(TUNNEL_BYTES), rounds }
}

function close(bench: Bench): void {
  bench.wrapper.close()
  bench.node.close()
}

async function main(rounds: number): Promise<void> {
  setUpNamespace()
  const bench = await newBench(rounds)
  const figures = families.flatMap((family) => establishedFigures(bench, establishedStories(family)))
  close(bench)
  for (const story of families.flatMap(newStories)) figures.push(...(await newFigures(rounds, story)))
  for (const family of families) {
    const judging = await newBench(rounds)
    figures.push(...(await policyFigures(judging, family, FLOWS)), ...xdpFigures(judging, family))
    close(judging)
  }
  process.stdout.write(`${JSON.stringify(figures)}\n`)
}

await main(Number(process.argv[2] ?? 40))
