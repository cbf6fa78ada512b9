// SPDX-License-Identifier: Apache-2.0
/** Runs the kinds of tests and adds them up; `make test` is this. Layer: test.
 *
 * `run.ts [STAGE …]` runs these only, such as "unit" or "loss"; `run.ts all` runs those too that are outside of the
 * gate. What failed is named at the end, and the last line is `N passed, M failed, K skipped`. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { cgroupObstacle } from '../testkit/kubernetes/cgroups.ts'
import { command, vitest, type VitestOptions } from './runner/commands.ts'
import { withSanitizedAddon } from './native/sanitized.ts'
import { SEED } from './support/steady/seed.ts'
import { inOwnNamespaces } from '../testkit/base/namespaces.ts'
import { removeLeftovers } from './runner/leftovers.ts'
import { runStages, type Part, type Stage } from './runner/stages.ts'
import { inOwnWorld, isInOwnWorld } from './runner/world.ts'

const node = process.execPath
const needsRoot = process.getuid?.() === 0 ? undefined : 'needs root'
/** Tests of the lab that count what is lost or late while something happens, take silence for an answer, or compare
 * the machine before and after. */
const ALONE = [
  ...['processes/agents', 'upstream/networking', 'hand-over', 'mode', 'processes/kill', 'lab'],
  ...['net/forwarding', 'net/node-life', 'policy', 'services', 'traffic/traffic', 'upgrade/previous'],
].map((name) => `test/lab/${name}.test.ts`)
/** The same of a real cluster. */
const ALONE_IN_CLUSTER = ['dataplane-mode', 'operator/ipv6', 'operator/switch'].map((name) => `test/cluster/${name}.test.ts`)

type Again = NonNullable<Stage['again']>

/** Files of the lab that measure, or that take long for what they find: outside of the gate. */
const SLOW = ['image-arm64', 'upstream/rates'].map((name) => `test/lab/${name}.test.ts`)

/** The longest first: then the lanes end together. */
function stagesIn(folder: string): readonly Stage[] {
  const tests = (options: Omit<VitestOptions, 'folder'>): Part => {
    return (print, limit) => vitest(print, { ...options, folder, limit })
  }
  const kernel = { project: 'kernel', prefix: inOwnNamespaces }
  const api = { project: 'api', prefix: inOwnNamespaces }
  const lab = { project: 'lab' }
  const e2e = { project: 'e2e' }
  const unit = { project: 'unit' }
  const line = (...words: readonly string[]): Part => {
    return (print, limit) => command(print, words, limit)
  }
  const make = (...words: readonly string[]): Part => line('make', '--no-print-directory', ...words)
  const [vm, demo] = [line('test/kernel/run'), line(node, 'dist/demo/main.js')]
  /** A test file of the project, by itself. */
  const file = (options: Omit<VitestOptions, 'folder'>): Again => {
    return (name) => (name === undefined ? undefined : tests({ ...options, only: [name] }))
  }
  /** The command itself, of which no file is known. */
  const whole = (part: Part): Again => {
    return (name) => (name === undefined ? part : undefined)
  }
  const parts = (count: number, options: Omit<VitestOptions, 'folder'>): Part[] =>
    shards(count).map((shard) => tests({ ...options, shard }))
  return [
    {
      name: 'e2e',
      obstacle: needsRoot ?? cgroupObstacle(),
      inLanes: true,
      parts: [withKubernetes(tests({ ...e2e, except: ALONE_IN_CLUSTER }))],
      again: file(e2e),
    },
    { name: 'kernel', obstacle: needsRoot, inLanes: true, parts: parts(4, kernel), again: file(kernel) },
    { name: 'lab', obstacle: needsRoot, inLanes: true, parts: parts(4, { ...lab, except: [...ALONE, ...SLOW] }), again: file(lab) },
    { name: 'api', obstacle: needsRoot, inLanes: true, parts: parts(6, api).map(withKubernetes), again: file(api) },
    {
      name: 'sanitized',
      obstacle: needsRoot,
      inLanes: true,
      parts: [tests({ project: 'kernel', prefix: withSanitizedAddon, only: ['test/native/'] })],
    },
    { name: 'unit', inLanes: true, parts: [tests(unit)], again: file(unit) },
    { name: 'lint', inLanes: true, parts: [make('lint')] },
    { name: 'oracle', inLanes: true, parts: [make('test-oracle')] },
    { name: 'fuzz', inLanes: true, parts: [make('test-fuzz')] },
    { name: 'loss', obstacle: needsRoot, parts: [tests({ ...lab, only: ALONE })], again: file(lab) },
    {
      name: 'e2e-loss',
      obstacle: needsRoot ?? cgroupObstacle(),
      parts: [withKubernetes(tests({ ...e2e, only: ALONE_IN_CLUSTER }))],
      again: file(e2e),
    },
    { name: 'vm', obstacle: needsRoot, inLanes: true, parts: [vm], again: whole(vm) },
    { name: 'demo', obstacle: needsRoot, parts: [demo], again: whole(demo) },
    { name: 'slow', obstacle: needsRoot, isOutside: true, parts: [tests({ ...lab, only: SLOW })] },
    { name: 'soak', obstacle: needsRoot, isOutside: true, parts: [withKubernetes(line(node, 'dist/soak/main.js', '--minutes', '1'))] },
    {
      name: 'scale',
      obstacle: needsRoot,
      isOutside: true,
      parts: [withKubernetes(line(node, 'dist/bench/scale/main.js', '--size', '1k'))],
    },
    { name: 'bench', obstacle: needsRoot, isOutside: true, parts: [line(node, 'dist/bench/main.js', '--quick')] },
    { name: 'kernels', obstacle: needsRoot, isOutside: true, parts: [line('test/kernel/run', '--all')] },
  ]
}

async function main(wanted: readonly string[]): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'netplane-test-'))
  try {
    const stages = stagesIn(folder)
    // for all that draws: tests, fuzzers, the soak
    process.env['SEED'] = String(SEED)
    console.log(`seed ${SEED}`)
    // compiled once for all processes that the run starts
    process.env['NODE_COMPILE_CACHE'] = join(folder, 'compiled')
    if (isInOwnWorld()) for (const left of removeLeftovers()) console.log(`left by another run, and removed: ${left}`)
    return await runStages(chosenOf(stages, wanted))
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Without names those of the gate. Throws when a name is none of a stage. */
function chosenOf(stages: readonly Stage[], wanted: readonly string[]): readonly Stage[] {
  if (wanted.length === 0) return stages.filter(({ isOutside }) => isOutside !== true)
  if (wanted.length === 1 && wanted[0] === 'all') return stages
  const chosen = stages.filter(({ name }) => wanted.includes(name))
  if (chosen.length !== wanted.length) throw new Error(`no such stage; there are ${stages.map(({ name }) => name).join(', ')}`)
  return chosen
}

function shards(count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `${index + 1}/${count}`)
}

/** What the part runs is built first, from outside the namespaces: that needs the network. Two at once wait for each
 * other. */
function withKubernetes(part: Part): Part {
  return async (print, limit) => {
    const lock = ['flock', join(tmpdir(), 'netplane-kubernetes.lock')]
    const built = await command(print, [...lock, node, '--conditions=source', 'testkit/kubernetes/main.ts'], limit)
    return built.failed > 0 ? built : await part(print, limit)
  }
}

const wanted = process.argv.slice(2)
const hasWorld = needsRoot !== undefined || isInOwnWorld()
process.exitCode = await (hasWorld ? main(wanted) : inOwnWorld([node, '--conditions=source', 'test/run.ts', ...wanted]))
