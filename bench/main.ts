// SPDX-License-Identifier: Apache-2.0
/** `make bench`: runs the parts one after another, prints their tables, writes the results. Layer: bench. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { loadavg } from 'node:os'
import { dirname, join } from 'node:path'
import { systemClock } from '#lib/base/clock.ts'
import { errorText } from '#lib/base/errors.ts'
import { readFacts } from './base/facts.ts'
import type { BenchOptions } from './base/options.ts'
import { HELP, PARTS, parseOptions } from './base/options.ts'
import { runPart } from './base/run-part.ts'
import { controlResults, flowsResults, lossResults, mergeLoss, packetResults, parseResults, pathResults } from './base/results.ts'
import type { Results } from './base/results.ts'
import { packageRoot } from '#lib/base/os/package.ts'
import { asText, factsLine, tablesOf } from './base/tables.ts'
import type { ControlFigure, FlowsFigure, ListFigure, PolicyFigure } from './control/result.ts'
import type { LossFigure } from './loss/result.ts'
import type { PacketFigure } from './packet/result.ts'
import type { RatioFigure } from './path/result.ts'
import { previousVersion } from '../testkit/previous/build.ts'

const MINUTE = 60_000
const LONGEST_ERROR = 4000

async function packetPart(quick: boolean): Promise<PacketFigure[]> {
  return await runPart<PacketFigure>({
    part: 'packet/main',
    args: [quick ? '4' : '40'],
    isolated: true,
    timeoutMs: 6 * MINUTE,
    fields: ['id', 'net', 'hooks'],
  })
}

/** Sizes, starts of each, changes. */
async function controlPart(quick: boolean): Promise<ControlFigure[]> {
  return await runPart<ControlFigure>({
    part: 'control/main',
    args: quick ? ['0,1000', '1', '40'] : ['0,1000,10000', '3', '200'],
    isolated: true,
    timeoutMs: 8 * MINUTE,
    fields: ['services', 'coldSeconds', 'changeMs'],
  })
}

/** Size, times. */
async function listPart(quick: boolean): Promise<ListFigure[]> {
  return await runPart<ListFigure>({
    part: 'control/list',
    args: quick ? ['1000', '3'] : ['10000', '5'],
    isolated: true,
    timeoutMs: 2 * MINUTE,
    fields: ['services', 'cpuSeconds', 'peakMb'],
  })
}

/** Pods, starts, new pods. */
async function policyPart(quick: boolean): Promise<PolicyFigure[]> {
  return await runPart<PolicyFigure>({
    part: 'control/policy',
    args: quick ? ['1000', '1', '40'] : ['10000', '3', '200'],
    isolated: true,
    timeoutMs: 3 * MINUTE,
    fields: ['pods', 'coldSeconds', 'podMs'],
  })
}

async function flowsPart(): Promise<FlowsFigure[]> {
  return await runPart<FlowsFigure>({
    part: 'control/flows',
    args: [],
    isolated: true,
    timeoutMs: MINUTE,
    fields: ['flows', 'eventUs', 'entryUs', 'memoryMb'],
  })
}

/** Rounds, ms of a slice. */
async function pathPart(quick: boolean): Promise<RatioFigure[]> {
  return await runPart<RatioFigure>({
    part: 'path/main',
    args: quick ? ['3', '40'] : ['20', '60'],
    isolated: false,
    timeoutMs: 12 * MINUTE,
    fields: ['path', 'contender', 'ratio'],
  })
}

/** Kills, collisions by each way, whether to leave growth and kube-proxy out. */
async function lossPart(quick: boolean, runs = quick ? 3 : 100): Promise<LossFigure[]> {
  await previousVersion() // is built once, and not in the part's time
  return await runPart<LossFigure>({
    part: 'loss/main',
    args: [String(runs), ...(quick ? ['2', 'quick'] : ['10'])],
    isolated: false,
    timeoutMs: 15 * MINUTE + runs * 10_000,
    fields: ['id', 'runs', 'fault', 'control'],
  })
}

async function measure(options: BenchOptions): Promise<Results> {
  const before = loadavg()[0] ?? 0
  const asked = async <T>(part: BenchOptions['parts'][number], run: (quick: boolean) => Promise<T[]>): Promise<T[]> => {
    if (!options.parts.includes(part)) return []
    const start = systemClock.now()
    process.stderr.write(`bench: ${part} …`)
    const figures = await run(options.quick)
    process.stderr.write(` ${Math.round((systemClock.now() - start) / 1000)} s\n`)
    return figures
  }
  const packets = await asked('packet', packetPart)
  const control = controlResults(await asked('control', controlPart), await asked('control', policyPart), await asked('control', listPart))
  const flows = flowsResults(await asked('control', flowsPart))
  const path = pathResults(await asked('path', pathPart))
  const loss = lossResults(await asked('loss', (quick) => lossPart(quick, options.runs)))
  const packet = packetResults(packets)
  printHooks(packets)
  return {
    facts: readFacts(),
    packet: packet.packet,
    path: path.path,
    control: { ...control.control, ...flows },
    loss: loss.loss,
    noise: { load: [before, loadavg()[0] ?? 0], packet: packet.noise, path: path.noise, control: control.noise, loss: loss.noise },
  }
}

/** What the sums are made of: not in the results, but one wants to know. */
function printHooks(figures: readonly PacketFigure[]): void {
  for (const { id, hooks, note } of figures) {
    process.stdout.write(`${id}: ${hooks.map(({ program, net }) => `${program} ${Math.round(net)}`).join(' + ')} ns (${note})\n`)
  }
  if (figures.length > 0) process.stdout.write('\n')
}

/** What the file holds of losses, or of all else, stays where it was not measured now. */
function mergeFile(now: Results, path: string, parts: BenchOptions['parts']): Results {
  if (!existsSync(path)) return now
  return mergeLoss(
    now,
    parseResults(readFileSync(path, 'utf8')),
    parts.every((part) => part === 'loss'),
  )
}

async function main(argv: readonly string[]): Promise<number> {
  const options = parseOptions(argv)
  if (options === 'help') {
    process.stdout.write(HELP)
    return 0
  }
  const whole = options.parts.length === PARTS.length && !options.quick
  const path = options.out ?? (whole ? join(packageRoot(), 'bench/results/latest.json') : undefined)
  const measured = await measure(options)
  process.stdout.write(`${factsLine(measured)}\n\n${tablesOf(measured).map(asText).join('\n')}`)
  if (path !== undefined) {
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, `${JSON.stringify(mergeFile(measured, path, options.parts), undefined, 2)}\n`)
    process.stdout.write(`\nwritten to ${path}\n`)
  }
  return 0
}

try {
  process.exitCode = await main(process.argv.slice(2))
} catch (thrown) {
  // a refused program brings the whole log of the verifier along
  process.stderr.write(`bench: ${errorText(thrown).slice(0, LONGEST_ERROR)}\n`)
  process.exitCode = 1
}
