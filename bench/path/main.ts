// SPDX-License-Identifier: Apache-2.0
/** End to end: every path in every contender's lab, in turn, as ratios to the plain one; writes its figures to
 * standard output as JSON. Layer: bench. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { InternalError } from '#lib/base/errors.ts'
import { median, medianInterval } from '../base/statistics.ts'
import { packageRoot } from '#lib/base/os/package.ts'
import { builtPrograms } from '../../testkit/kubernetes/build/programs.ts'
import { ContenderLab } from './contender-lab.ts'
import type { ContenderLabOptions } from './contender-lab.ts'
import type { Contender, Measure, RatioFigure, Setting } from './result.ts'
import { SETTINGS } from './result.ts'
import { serveByKernelVxlan } from './kernel-vxlan.ts'
import { clusterManifest } from './manifests.ts'
import type { Path } from './paths.ts'
import { paths } from './paths.ts'
import { serveByKubeProxy } from './kube-proxy.ts'
import type { Answer, Verb } from './traffic.ts'

interface Slices {
  readonly rounds: number
  readonly ms: number
}

interface Asked {
  readonly verb: Verb
  readonly measures: readonly Measure[]
}

const VERBS: readonly Asked[] = [
  { verb: 'rr', measures: ['rr_p50'] },
  { verb: 'crr', measures: ['crr_p50'] },
  { verb: 'pps', measures: ['pps'] },
  { verb: 'tput', measures: ['tput', 'cpu_per_gbit'] },
]

const ON_WIRES: readonly (readonly [mtu: number, asked: Asked])[] = [
  [1500, { verb: 'tput', measures: ['tput_wire', 'cpu_per_gbit_wire'] }],
  [9000, { verb: 'tput', measures: ['tput_wire_9000', 'cpu_per_gbit_wire_9000'] }],
]

/** Client and server share a CPU and take turns: nothing is woken from sleep, nothing waits for the other, what is left
 * is the path. In a stream no other task gets in between (SCHED_FIFO). */
const CPU = availableParallelism() - 1

function valueOf(answer: Answer, measure: Measure): number {
  const value = {
    rr_p50: answer.p50_ns,
    crr_p50: answer.p50_ns,
    pps: answer.per_second,
    tput: answer.bits_per_second,
    cpu_per_gbit: answer.cpu_ns_per_bit,
    tput_wire: answer.bits_per_second,
    cpu_per_gbit_wire: answer.cpu_ns_per_bit,
    tput_wire_9000: answer.bits_per_second,
    cpu_per_gbit_wire_9000: answer.cpu_ns_per_bit,
  }[measure]
  if (value === undefined) throw new InternalError(`no ${measure} in ${JSON.stringify(answer)}`)
  return value
}

/** ABBA: every round goes through the contenders forwards, then backwards, so that a drift of the machine meets all
 * alike. */
async function measurePath(
  arenas: readonly ContenderLab[],
  path: Path,
  { asked, slices }: { readonly asked: readonly Asked[]; readonly slices: Slices },
): Promise<RatioFigure[]> {
  const figures: RatioFigure[] = []
  for (const { verb, measures } of asked) {
    const rounds: Map<Contender, Answer[]>[] = []
    for (let round = 0; round < slices.rounds; round++) {
      const answers = new Map<Contender, Answer[]>(arenas.map(({ contender }) => [contender, []]))
      for (const arena of [...arenas, ...arenas.toReversed()]) {
        const to = arena.contender === 'plain' ? path.plainTo : path.to
        answers.get(arena.contender)?.push(await arena.from(path.start).run({ verb, ...to, ms: slices.ms, clientCpu: CPU, serverCpu: CPU }))
      }
      rounds.push(answers)
    }
    for (const measure of measures)
      for (const arena of arenas)
        if (arena.contender !== 'plain') figures.push(ratioOf({ path: path.id, contender: arena.contender, measure }, rounds))
  }
  return figures
}

function ratioOf(
  what: Pick<RatioFigure, 'path' | 'contender' | 'measure'>,
  rounds: readonly ReadonlyMap<Contender, readonly Answer[]>[],
): RatioFigure {
  const mean = (answers: readonly Answer[] | undefined): number =>
    (answers ?? []).reduce((sum, answer) => sum + valueOf(answer, what.measure), 0) / (answers?.length ?? 1)
  const values = rounds.map((answers) => mean(answers.get(what.contender)))
  const ratios = rounds.map((answers, round) => (values[round] ?? 0) / mean(answers.get('plain')))
  return { ...what, ratio: median(ratios), interval: medianInterval(ratios), absolute: median(values) }
}

type Entrant = Pick<ContenderLabOptions, 'contender' | 'serve'>

/** What there is to compare with. kube-proxy's programs are not built here (that takes longer than measuring), and
 * it has no DSR. */
function peersIn(setting: Setting): Entrant[] {
  const programs = builtPrograms()
  if (setting === 'overlay') return [{ contender: 'vxlan', serve: serveByKernelVxlan }]
  if (setting === 'dsr' || programs === undefined) return []
  return (['iptables', 'nftables'] as const).map((mode) => ({ contender: mode, serve: serveByKubeProxy({ mode, programs }) }))
}

/** One setting's labs are up at a time: agents of others would want their share. */
async function measureSetting(setting: Setting, slices: Slices): Promise<RatioFigure[]> {
  await using stack = new AsyncDisposableStack()
  const resources = mkdtempSync(join(tmpdir(), 'netplane-bench-'))
  stack.defer(() => rmSync(resources, { recursive: true }))
  writeFileSync(join(resources, 'cluster.json'), clusterManifest(setting))
  const tool = join(packageRoot(), 'bench/tools/traffic')
  const arenas: ContenderLab[] = []
  const entrants: readonly Entrant[] = [{ contender: 'plain' }, { contender: 'netplane' }, ...peersIn(setting)]
  for (const entrant of entrants) arenas.push(stack.use(await ContenderLab.build({ ...entrant, setting, resources, tool })))
  const figures: RatioFigure[] = []
  for (const path of paths.filter((one) => one.setting === setting)) {
    await measurePath(arenas, path, { asked: VERBS, slices: WARM_UP })
    figures.push(...(await measurePath(arenas, path, { asked: VERBS, slices })))
  }
  return [...figures, ...(await measureOnWires(arenas, setting, slices))]
}

const WARM_UP: Slices = { rounds: 1, ms: 30 }

/** Last, for the labs stay on the wire. kube-proxy has no tunnel. */
async function measureOnWires(all: readonly ContenderLab[], setting: Setting, slices: Slices): Promise<RatioFigure[]> {
  const arenas = all.filter(({ contender }) => contender !== 'iptables' && contender !== 'nftables')
  const figures: RatioFigure[] = []
  for (const [mtu, asked] of ON_WIRES) {
    for (const arena of arenas) await arena.putOnWire(mtu)
    for (const path of paths.filter((one) => one.setting === setting && one.onWires === true)) {
      await measurePath(arenas, path, { asked: [asked], slices: WARM_UP })
      figures.push(...(await measurePath(arenas, path, { asked: [asked], slices })))
    }
  }
  return figures
}

async function main(argv: readonly string[]): Promise<void> {
  const [rounds = '20', ms = '60'] = argv
  const figures: RatioFigure[] = []
  for (const setting of SETTINGS) figures.push(...(await measureSetting(setting, { rounds: Number(rounds), ms: Number(ms) })))
  process.stdout.write(`${JSON.stringify(figures)}\n`)
}

await main(process.argv.slice(2))
