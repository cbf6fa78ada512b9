// SPDX-License-Identifier: Apache-2.0
/** The cluster of a directory of manifests, as it is and with candidates. Layer: cli. */
import { ConfigError } from '#lib/base/errors.ts'
import { readDirectory } from '#lib/manifests/read-directory.ts'
import { refText } from '#lib/model/ref.ts'
import type { Problem } from '#lib/store/source.ts'
import { inForce, type Candidates } from '../../candidates.ts'
import { clusterOf, type ExplainedCluster } from './cluster.ts'

export interface Clusters {
  readonly now: ExplainedCluster
  /** undefined: there are no candidates */
  readonly candidate: ExplainedCluster | undefined
  /** what the directory has and we cannot use */
  readonly problems: readonly Problem[]
}

/** Throws ConfigError when the directory cannot be read. */
export async function loadClusters(directory: string, candidates: Candidates | undefined): Promise<Clusters> {
  const { events, problems, unavailable } = await readDirectory(directory)
  if (unavailable !== undefined) throw new ConfigError('--resources', unavailable)
  const now = clusterOf(events)
  if (candidates === undefined) return { now, candidate: undefined, problems }
  const known = new Set(events.flatMap((event) => (event.kind === 'upsert' ? [refText(event.object)] : [])))
  return { now, candidate: candidateWorld(candidates, { events, known }), problems }
}

function candidateWorld(
  candidates: Candidates,
  { events, known }: { readonly events: Parameters<typeof clusterOf>[0]; readonly known: ReadonlySet<string> },
): ExplainedCluster {
  return clusterOf(
    events,
    inForce(candidates, known).map((object) => ({ kind: 'upsert', object })),
  )
}
