// SPDX-License-Identifier: Apache-2.0
/** `policy check`: what is wrong with candidates, which pods they select, and which flows they change. Layer: cli. */
import { readFileSync } from 'node:fs'
import { ConfigError, errorText } from '#lib/base/errors.ts'
import { deepEqual } from '#lib/base/deep-equal.ts'
import { isPolicyKind } from '#lib/model/kinds.ts'
import { refText } from '#lib/model/ref.ts'
import type { KubeObject } from '#lib/model/snapshot.ts'
import type { CheckOrder } from '../args.ts'
import { readCandidates } from '../candidates.ts'
import { clusterOf, type ExplainedCluster } from '../explain/manifests/cluster.ts'
import { loadClusters, type Clusters } from '../explain/manifests/load-cluster.ts'
import { linesText, problemRecord, problemText, type CommandResult } from '../command-result.ts'
import { flowChanges, flowTable, type FlowChange } from './flow-changes.ts'
import { selections, selectionTable } from './selections.ts'

/** Exit code 1 where something of the candidates cannot be used. Throws ConfigError when a file cannot be read. */
export async function checkCommand({ path, resources, flows, json }: CheckOrder): Promise<CommandResult> {
  const candidates = readCandidates(path)
  const worlds = resources === undefined ? undefined : await loadClusters(resources, candidates)
  const alone = [...candidates.objects, ...[...candidates.unusable.values()].filter((object) => object !== undefined)]
  const world = worlds?.candidate ?? clusterOf(alone.map((object) => ({ kind: 'upsert', object })))
  const selected = selections(inForceIn(alone, world), { world, isWhole: worlds !== undefined })
  const changes = flows === undefined || worlds === undefined ? undefined : changesIn(flows, worlds)
  const exitCode = candidates.problems.length > 0 || (changes?.disagreements ?? []).length > 0 ? 1 : 0
  const elsewhere = worlds?.problems ?? []
  if (json) {
    const record = {
      problems: candidates.problems.map(problemRecord),
      foreign: candidates.foreign,
      resourceProblems: elsewhere.map(problemRecord),
      policies: selected,
      flows: changes?.flows ?? null,
      disagreements: changes?.disagreements ?? [],
    }
    return { text: `${JSON.stringify(record, undefined, 1)}\n`, warnings: '', exitCode }
  }
  const warnings = [
    ...candidates.problems.map(problemText),
    ...candidates.foreign.map((what) => `${what} is nothing that Netplane reads`),
    ...elsewhere.map((problem) => `in --resources: ${problemText(problem)}`),
    ...(changes?.disagreements ?? []).map((text) => `DEFECT: ${text}`),
  ]
  const parts = [selectionTable(selected), ...(changes === undefined ? [] : [flowTable(changes.flows)])]
  return { text: parts.join('\n'), warnings: linesText(warnings), exitCode }
}

/** Of an object that cannot be read the last good version stays, where there is one. */
function inForceIn(objects: readonly KubeObject[], { snapshot }: ExplainedCluster): readonly KubeObject[] {
  return objects.filter((object) => !isPolicyKind(object.kind) || deepEqual(snapshot.policies.get(refText(object)), object))
}

interface Changes {
  readonly flows: readonly FlowChange[]
  readonly disagreements: readonly string[]
}

function changesIn(file: string, worlds: Clusters): Changes {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (thrown) {
    throw new ConfigError('--flows', errorText(thrown), thrown)
  }
  const lines = text.split('\n').map((line, at) => ({ line: line.replace(/#.*/, '').trim(), at: at + 1 }))
  const flows = lines.filter(({ line }) => line !== '').flatMap((one) => flowChanges({ file, ...one }, worlds))
  return { flows, disagreements: [...new Set(flows.flatMap((flow) => flow.disagreements))] }
}
