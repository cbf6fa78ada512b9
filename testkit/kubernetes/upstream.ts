// SPDX-License-Identifier: Apache-2.0
/** Runs Kubernetes' own end-to-end tests against a cluster and reads what became of each. Layer: testkit. */
import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { listAt, textAt } from '../../lab/raw.ts'
import type { Cluster } from './cluster.ts'

export interface SpecOutcome {
  /** "[sig-network] Services should serve a basic endpoint from pods" */
  readonly name: string
  readonly state: 'passed' | 'failed' | 'skipped'
  /** of a failed one, its output; of a skipped one, why */
  readonly message: string
  readonly seconds: number
}

export interface Choice {
  /** whole names */
  readonly names: readonly string[]
  /** how many run at a time, but for those that must be alone; default 1 */
  readonly lanes?: number
  /** for each lane */
  readonly timeoutMs: number
}

/** Of these specs. Probes and pods that begin are waited for, so that lanes save time even where CPUs are few. */
export async function runUpstream(cluster: Cluster, program: string, choice: Choice): Promise<SpecOutcome[]> {
  const { lanes = 1, timeoutMs } = choice
  const alone = choice.names.filter((name) => ALONE.test(name))
  const others = choice.names.filter((name) => !ALONE.test(name))
  const shares = Array.from({ length: lanes }, (_, lane) => others.filter((_name, index) => index % lanes === lane))
  const run = (names: readonly string[], lane: number): Promise<SpecOutcome[]> =>
    names.length === 0 ? Promise.resolve([]) : runLane({ cluster, program, names, timeoutMs, folder: folderIn(cluster, lane) })
  const outcomes = await Promise.all(shares.map(run))
  return [...outcomes.flat(), ...(await run(alone, lanes))]
}

const ALONE = /\[(Serial|Disruptive)\]/

interface Lane {
  readonly cluster: Cluster
  readonly program: string
  readonly names: readonly string[]
  readonly timeoutMs: number
  readonly folder: string
}

/** A run that ends without a report throws with the end of its output. */
async function runLane({ cluster, program, names, timeoutMs, folder }: Lane): Promise<SpecOutcome[]> {
  const report = join(folder, REPORT)
  const flags = [
    ...[`--kubeconfig=${cluster.plane.kubeconfig}`, `--kubectl-path=${join(cluster.programs, 'kubectl')}`, '--provider=skeleton'],
    ...[`--num-nodes=${cluster.nodes.length}`, '--allowed-not-ready-nodes=0', '--node-os-distro=debian', '--disable-log-dump'],
    ...['--dump-logs-on-failure=false', '--ginkgo.no-color', '--ginkgo.seed=1', `--ginkgo.json-report=${report}`],
    ...[`--ginkgo.focus=${focusOf(names)}`, `--ginkgo.timeout=${Math.ceil(timeoutMs / 1000)}s`],
  ]
  // from where clients of a cluster are: behind a router
  const { stdout, stderr } = await cluster.lab.run('far', ['sh', '-c', LOGGED, folder, program, ...flags], {
    timeoutMs: timeoutMs + 60_000,
  })
  try {
    return outcomesOf(readFileSync(report, 'utf8'))
  } catch (thrown) {
    const output = readFileSync(join(folder, 'output.log'), 'utf8').slice(-3000)
    throw new Error(`upstream's tests left no report: ${stdout}${stderr}${output}`, { cause: thrown })
  }
}

/** Names of all specs of the network, whether they can run here or not. */
export async function listUpstream(cluster: Cluster, program: string): Promise<string[]> {
  const folder = folderIn(cluster, 'names')
  const report = join(folder, REPORT)
  const flags = ['--ginkgo.dry-run', String.raw`--ginkgo.focus=\[sig-network\]`, `--ginkgo.json-report=${report}`]
  await cluster.lab.mustRun('far', ['sh', '-c', LOGGED, folder, program, ...flags])
  return outcomesOf(readFileSync(report, 'utf8')).map(({ name }) => name)
}

/** In a folder of the cluster's, with what it says kept there. */
const LOGGED = 'cd "$0" && exec "$@" > output.log 2>&1'

const REPORT = 'report.json'

/** Of one lane, or of the list of names; without an old report. */
function folderIn(cluster: Cluster, lane: number | 'names'): string {
  const folder = join(cluster.folder, 'upstream', String(lane))
  mkdirSync(folder, { recursive: true })
  rmSync(join(folder, REPORT), { force: true })
  return folder
}

/** ginkgo looks for it in "Kubernetes e2e suite NAME". */
export function focusOf(names: readonly string[]): string {
  return `suite (${names.map((name) => name.replaceAll(/[.*+?^$()[\]{}|\\]/g, String.raw`\$&`)).join('|')})$`
}

/** Of ginkgo's JSON report. Specs that were not chosen are left out. */
export function outcomesOf(text: string): SpecOutcome[] {
  const suites: unknown = JSON.parse(text)
  return listAt({ suites }, 'suites')
    .flatMap((suite) => listAt(suite, 'SpecReports'))
    .flatMap(outcomeOf)
}

function outcomeOf(spec: unknown): SpecOutcome[] {
  const state = textAt(spec, 'State') ?? ''
  const message = textAt(spec, 'Failure.Message') ?? ''
  const leaf = textAt(spec, 'LeafNodeType')
  // one that was not chosen is skipped without a word; parts of the suite count when they fail
  if ((state === 'skipped' && message === '') || state === 'pending' || (leaf !== 'It' && state === 'passed')) return []
  const words = [...listAt(spec, 'ContainerHierarchyTexts'), textAt(spec, 'LeafNodeText') ?? leaf].filter(
    (word) => typeof word === 'string',
  )
  const seconds = Number(Reflect.get(Object(spec), 'RunTime')) / 1e9
  return [{ name: words.join(' '), state: state === 'passed' || state === 'skipped' ? state : 'failed', message, seconds }]
}
