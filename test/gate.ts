// SPDX-License-Identifier: Apache-2.0
/** The stages of the tests: what each runs, under what, and beside what; `run.ts` runs them. Layer: test. */
import { readdirSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isLong } from './cluster/length.ts'
import { inOwnNamespaces } from '../testkit/base/namespaces.ts'
import { cgroupObstacle } from '../testkit/kubernetes/cgroups.ts'
import { withSanitizedAddon } from './native/sanitized.ts'
import { command, vitest, type VitestOptions } from './runner/commands.ts'
import { kindOf } from './runner/kinds.ts'
import { BUSY, HALF_BUSY, WAITING } from './runner/schedule/scheduler.ts'
import type { Part, Stage } from './runner/stages.ts'

type Again = NonNullable<Stage['again']>
type Options = Omit<VitestOptions, 'folder'>

const node = process.execPath
export const needsRoot = process.getuid?.() === 0 ? undefined : 'needs root'
/** Tests of the lab that count what is lost or late while something happens, take silence for an answer, or compare
 * the machine before and after. Beside each other they take as long: what counts losses keeps a processor busy. */
export const ALONE = [
  ...['processes/agents', 'hand-over', 'mode', 'processes/kill', 'lab', 'net/forwarding', 'net/node-life'],
  ...['policy', 'services', 'traffic/traffic', 'upgrade/previous'],
].map((name) => pathOf(`lab/${name}`))
/** The same of a real cluster, where the operator installs. */
const ALONE_IN_CLUSTER = [pathOf('cluster/operator/switch')]
/** Files outside of the gate, by the part that has them: they measure, or take long for what they find. */
export const SLOW = {
  bench: [
    ...['lab/image-arm64', 'lab/upstream/rates', 'apiserver/operator/cost'],
    ...['lib/kube/parse/longest', 'lib/model/selector/longest'],
  ].map(pathOf),
  long: [
    ...['net/firewall-programs', 'net/tunnel-losses', 'upstream/networking'].map((name) => `lab/${name}`),
    ...['cli/kubectl', 'operator/endpoint-gone', 'operator/failures'].map((name) => `apiserver/${name}`),
    ...['chart-kills', 'lease', 'owners', 'ours/before-this-form', 'ours/edits', 'ours/operator'].map(
      (name) => `apiserver/upgrade/${name}`,
    ),
    ...['chained', 'churn', 'dataplane-mode', 'empty-cluster', 'faults', 'operator', 'operator/interrupted', 'operator/ipv6'].map(
      (name) => `cluster/${name}`,
    ),
  ].map(pathOf),
}
const SLOW_FILES = Object.values(SLOW).flat()
/** Files that wait for timers, for leases, and for what must not come. */
const MOSTLY_WAITING = [
  ...['life', 'switch'].map((name) => `apiserver/operator/${name}`),
  ...['edits', 'run', 'versions'].map((name) => `apiserver/upgrade/${name}`),
  ...['flows/node', 'net/tunnel-probe', 'upstream/services'].map((name) => `lab/${name}`),
].map(pathOf)

/** `folder`: for reports */
export function stagesIn(folder: string): readonly Stage[] {
  const tests = (options: Options): Part => {
    return (print, limit) => vitest(print, { ...options, folder, limit })
  }
  const lab = { project: 'lab' }
  const e2e = { project: 'e2e' }
  const unit = { project: 'unit' }
  const [vm, demo] = [line('test/kernel/run'), line(node, 'dist/demo/main.js')]
  const withKubernetes = kubernetesFirst()
  /** A test file of the project, by itself. */
  const file = (options: Options): Again => {
    return (name) => (name === undefined ? undefined : tests({ ...options, only: [name] }))
  }
  /** A project in one run. Its files are named: vitest's own `--exclude` says nothing to a project that has another. */
  const without = (options: Options, except: readonly string[]): Part =>
    tests({ ...options, only: filesOfProject(options.project, except) })
  /** The files of a project as jobs. */
  const filesOf = (options: Options, except: readonly string[] = []): Required<Pick<Stage, 'files' | 'again'>> => {
    const names = filesOfProject(options.project, except)
    return { files: { names, waiting: MOSTLY_WAITING, run: (only) => tests({ ...options, only }) }, again: file(options) }
  }
  const inApi = { project: 'api', prefix: inOwnNamespaces }
  const api = filesOf(inApi, SLOW_FILES)
  /** Those of the paths, one project after the other. */
  const slow = (paths: readonly string[]): readonly Part[] =>
    [unit, lab, inApi, e2e].flatMap((options) => {
      const only = paths.filter((path) => kindOf(path).project === options.project)
      return only.length === 0 ? [] : [withKubernetes(tests({ ...options, only }))]
    })
  /** All versions, ways, kinds and faults that there are, where the gate has the few that tell most. */
  const matrices = [unit, inApi, e2e, lab, { project: 'kernel', prefix: inOwnNamespaces }].map((options: Options) => {
    const only = filesOfProject(options.project).filter(hasMatrix)
    return withKubernetes(tests({ ...options, prefix: ['env', 'MATRIX=whole', ...(options.prefix ?? [])], only }))
  })
  return [
    {
      name: 'e2e',
      obstacle: needsRoot ?? cgroupObstacle(),
      weight: WAITING,
      parts: [withKubernetes(without(e2e, [...ALONE_IN_CLUSTER, ...SLOW_FILES]))],
      again: file(e2e),
    },
    { name: 'kernel', obstacle: needsRoot, weight: HALF_BUSY, ...filesOf({ project: 'kernel', prefix: inOwnNamespaces }) },
    { name: 'lab', obstacle: needsRoot, weight: WAITING, ...filesOf(lab, [...ALONE, ...SLOW_FILES]) },
    {
      name: 'api',
      obstacle: needsRoot,
      weight: WAITING,
      files: { ...api.files, run: (files) => withKubernetes(api.files.run(files)) },
      again: api.again,
    },
    {
      name: 'sanitized',
      obstacle: needsRoot,
      weight: BUSY,
      parts: [tests({ project: 'kernel', prefix: withSanitizedAddon, only: ['test/native/'] })],
    },
    { name: 'unit', weight: BUSY, parts: [without(unit, SLOW_FILES)], again: file(unit) },
    { name: 'lint', weight: BUSY, parts: [make('lint')] },
    { name: 'oracle', weight: BUSY, parts: [make('test-oracle')] },
    { name: 'fuzz', weight: BUSY, parts: [make('test-fuzz')] },
    // for what is measured at the end: then nothing else would run while it is built
    { name: 'previous', weight: BUSY, parts: [line(node, '--conditions=source', 'testkit/previous/main.ts')] },
    { name: 'vm', obstacle: needsRoot, weight: BUSY, parts: [vm], again: whole(vm) },
    { name: 'loss', obstacle: needsRoot, parts: [tests({ ...lab, only: ALONE })], again: file(lab) },
    {
      name: 'e2e-loss',
      obstacle: needsRoot ?? cgroupObstacle(),
      parts: [withKubernetes(tests({ ...e2e, only: ALONE_IN_CLUSTER }))],
      again: file(e2e),
    },
    { name: 'demo', obstacle: needsRoot, parts: [demo], again: whole(demo) },
    { name: 'soak', part: 'soak', obstacle: needsRoot, parts: [withKubernetes(line(node, 'dist/soak/main.js', '--minutes', '1'))] },
    { name: 'scale', part: 'scale', obstacle: needsRoot, parts: [withKubernetes(line(node, 'dist/bench/scale/main.js', '--size', '1k'))] },
    { name: 'bench', part: 'bench', obstacle: needsRoot, parts: [line(node, 'dist/bench/main.js', '--quick')] },
    { name: 'measured', part: 'bench', obstacle: needsRoot, parts: slow(SLOW.bench) },
    { name: 'kernels', part: 'kernels', obstacle: needsRoot, parts: [line('test/kernel/run', '--all')] },
    { name: 'fuzzers', part: 'fuzz', parts: [make('fuzz')] },
    { name: 'upstream', part: 'e2e', obstacle: needsRoot ?? cgroupObstacle(), parts: [make('e2e')] },
    { name: 'long', part: 'long', obstacle: needsRoot ?? cgroupObstacle(), parts: slow(SLOW.long.filter((path) => !hasMatrix(path))) },
    { name: 'matrices', part: 'long', obstacle: needsRoot ?? cgroupObstacle(), parts: matrices },
    { name: 'mutants', part: 'mutants', parts: [make('mutate')] },
    { name: 'faults', part: 'mutants', obstacle: needsRoot, parts: [make('faults')] },
    { name: 'seeds', part: 'seeds', obstacle: needsRoot, parts: [make('seeds')] },
    { name: 'tidy', part: 'tidy', parts: [make('tidy')] },
  ]
}

function pathOf(name: string): string {
  return `test/${name}.test.ts`
}

/** As `runner/kinds.ts` has them. */
function filesOfProject(project: string, except: readonly string[] = []): readonly string[] {
  return readdirSync('test', { recursive: true, encoding: 'utf8' })
    .map((name) => `test/${name}`)
    .filter((name) => name.endsWith('.test.ts') && kindOf(name).project === project && !except.includes(name))
    .filter((name) => isLong || !name.startsWith('test/cluster/long/'))
    .sort()
}

/** Whether the file takes its cases by `support/steady/matrix.ts`. */
function hasMatrix(file: string): boolean {
  return readFileSync(file, 'utf8').includes('/steady/matrix.ts')
}

function line(...words: readonly string[]): Part {
  return (print, limit) => command(print, words, limit)
}

function make(...words: readonly string[]): Part {
  return line('make', '--no-print-directory', ...words)
}

/** The command itself, of which no file is known. */
function whole(part: Part): Again {
  return (name) => (name === undefined ? part : undefined)
}

/** Builds Kubernetes before the first of the parts, from outside of their namespaces: that needs the network. When that
 * fails it is the first part's failure, and the others are skipped. */
function kubernetesFirst(): (part: Part) => Part {
  const lock = ['flock', join(tmpdir(), 'netplane-kubernetes.lock')]
  let built: ReturnType<Part> | undefined
  return (part) => async (print, limit) => {
    const isFirst = built === undefined
    built ??= command(print, [...lock, node, '--conditions=source', 'testkit/kubernetes/main.ts'], limit)
    const outcome = await built
    if (outcome.failed === 0) return await part(print, limit)
    return isFirst ? outcome : { passed: 0, failed: 0, skipped: 1, failures: [] }
  }
}
