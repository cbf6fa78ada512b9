// SPDX-License-Identifier: Apache-2.0
/** Parts of a bundle that containers of ours have written. Layer: cli. */
import type { ApiClient } from '#lib/api/client.ts'
import type { ApiObject } from '#lib/api/resource.ts'
import { fnv1a64 } from '#lib/base/hash.ts'
import type { Part } from '../bundle/collect.ts'
import { byTrouble, containersOf, type Container } from './pods.ts'

/** Of one container. */
const LINES = 5000
const BYTES = 4 << 20
/** In the archive a folder is called like the pod, whose name may be longer than a tar's. */
const LONGEST_FOLDER = 70

export interface LogChoice {
  readonly sinceSeconds: number
  readonly maxLogs: number
}

export function logParts(client: ApiClient, pods: readonly ApiObject[], { maxLogs, sinceSeconds }: LogChoice): readonly Part[] {
  const sorted = byTrouble(pods)
  const [read, left] = [sorted.slice(0, maxLogs), sorted.slice(maxLogs)]
  const parts = read.flatMap((pod) =>
    containersOf(pod).flatMap((container) => [
      logPart({ client, pod, container, previous: false, sinceSeconds }),
      ...(container.restarts > 0 ? [logPart({ client, pod, container, previous: true, sinceSeconds })] : []),
    ]),
  )
  if (left.length === 0) return parts
  const names = left.map(({ metadata: { namespace = '', name } }) => `${namespace}/${name}\n`).join('')
  return [...parts, { name: 'log/not-read.txt', about: 'pods whose logs were not asked for (--max-logs)', read: () => names }]
}

interface LogQuery {
  readonly client: ApiClient
  readonly pod: ApiObject
  readonly container: Container
  readonly previous: boolean
  readonly sinceSeconds: number
}

function logPart({ client, pod, container, previous, sinceSeconds }: LogQuery): Part {
  const { namespace = '', name } = pod.metadata
  const named = { apiVersion: 'v1', kind: 'Pod', namespace, name }
  // what ended an earlier run may be long ago
  const range = previous ? { previous } : { sinceSeconds }
  return {
    name: `log/${namespace}/${folderOf(name)}/${container.name}${previous ? '.previous' : ''}.txt`,
    about: previous ? `of its run before (${container.restarts} restarts)` : 'the last lines',
    read: () => client.log(named, { container: container.name, tailLines: LINES, limitBytes: BYTES, ...range }),
  }
}

function folderOf(pod: string): string {
  if (pod.length <= LONGEST_FOLDER) return pod
  const end = `-${fnv1a64(pod)}`
  return pod.slice(0, LONGEST_FOLDER - end.length) + end
}
