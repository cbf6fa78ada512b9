// SPDX-License-Identifier: Apache-2.0
/** Runs Kubernetes' own end-to-end tests against a cluster and reads what became of each. Layer: test. */
import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { listAt, textAt } from '../../lab/raw.ts'
import type { Cluster } from './cluster.ts'

export interface SpecOutcome {
  /** "[sig-network] Services should serve a basic endpoint from pods" */
  readonly name: string
  readonly state: 'passed' | 'failed' | 'skipped'
  /** of a failed one, what it said; of a skipped one, why */
  readonly message: string
  readonly seconds: number
}

export interface Choice {
  /** regular expressions over names */
  readonly focus: string
  readonly skip?: string
  readonly timeoutMs: number
}

/** Those that were chosen; a run that ends without a report throws with the end of its output. */
export async function runUpstream(cluster: Cluster, program: string, choice: Choice): Promise<SpecOutcome[]> {
  const folder = join(cluster.folder, 'upstream')
  mkdirSync(folder, { recursive: true })
  const report = join(folder, 'report.json')
  rmSync(report, { force: true })
  const flags = [
    ...[`--kubeconfig=${cluster.plane.kubeconfig}`, `--kubectl-path=${join(cluster.programs, 'kubectl')}`, '--provider=skeleton'],
    ...[`--num-nodes=${cluster.nodes.length}`, '--allowed-not-ready-nodes=0', '--node-os-distro=debian', '--disable-log-dump'],
    ...['--dump-logs-on-failure=false', '--ginkgo.no-color', '--ginkgo.seed=1', `--ginkgo.json-report=${report}`],
    ...[`--ginkgo.focus=${choice.focus}`, ...(choice.skip === undefined ? [] : [`--ginkgo.skip=${choice.skip}`])],
    `--ginkgo.timeout=${Math.ceil(choice.timeoutMs / 1000)}s`,
  ]
  const { stdout, stderr } = await cluster.lab.run(
    'fabric',
    ['sh', '-c', 'cd "$0" && exec "$@" > output.log 2>&1', folder, program, ...flags],
    {
      timeoutMs: choice.timeoutMs + 60_000,
    },
  )
  try {
    return outcomesOf(readFileSync(report, 'utf8'))
  } catch (thrown) {
    const output = readFileSync(join(folder, 'output.log'), 'utf8').slice(-3000)
    throw new Error(`upstream's tests left no report: ${stdout}${stderr}${output}`, { cause: thrown })
  }
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
