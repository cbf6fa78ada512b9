// SPDX-License-Identifier: Apache-2.0
/** `explain --resources`: a cluster out of manifests, asked about a flow. Layer: cli. */
import { ConfigError } from '#lib/base/errors.ts'
import { readCandidates } from '../../candidates.ts'
import { linesText, problemRecord, problemText, type CommandResult } from '../../command-result.ts'
import { explain, type ExplainOptions } from './explain.ts'
import { packetsOf } from './flows.ts'
import type { Query } from '../query.ts'
import { explanationText } from './text.ts'
import { loadClusters } from './load-cluster.ts'

export interface OfflineQuery extends ExplainOptions {
  readonly resources: string
  /** file or directory of candidates */
  readonly candidate: string | undefined
  readonly query: Query
  readonly json: boolean
}

/** Throws ConfigError when the directory cannot be read, or an end is not there. */
export async function explainOffline({ resources, candidate, query, json, entry, device }: OfflineQuery): Promise<CommandResult> {
  const candidates = candidate === undefined ? undefined : readCandidates(candidate)
  const worlds = await loadClusters(resources, candidates)
  const world = worlds.candidate ?? worlds.now
  if (entry !== undefined && !world.snapshot.nodes.has(entry)) throw new ConfigError('--entry', `there is no node ${entry}`)
  const packets = packetsOf(world, query)
  const flows = packets.map((packet) => explain(worlds, packet, { entry, device }))
  const problems = [...worlds.problems, ...(candidates?.problems ?? [])]
  const exitCode = flows.some(({ disagreements }) => disagreements.length > 0) ? 1 : 0
  if (json) return { text: `${JSON.stringify({ problems: problems.map(problemRecord), flows }, undefined, 1)}\n`, warnings: '', exitCode }
  const foreign = (candidates?.foreign ?? []).map((what) => `${what} is nothing that Netplane reads`)
  return { text: flows.map(explanationText).join('\n'), warnings: linesText([...problems.map(problemText), ...foreign]), exitCode }
}
