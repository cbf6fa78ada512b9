// SPDX-License-Identifier: Apache-2.0
/** What the way to automatic host endpoints depends on, as the API server has it. Layer: cli. */
import { getOrNone, listOrNone } from '#lib/api/absent.ts'
import type { ApiClient } from '#lib/api/client.ts'
import { WATCHED } from '#lib/api/watch/watch-list.ts'
import { NODE_NETWORK } from '#lib/kube/objects/node-network.ts'
import { identify, parseObject } from '#lib/kube/parse/parse-object.ts'
import { POLICY_KINDS } from '#lib/model/policy.ts'
import type { KubeObject } from '#lib/model/snapshot.ts'
import { CONFIGURATION } from '#controllers/config/configuration.ts'
import { HOST_ENDPOINTS } from '#controllers/host-endpoints/changes.ts'
import { clusterOf } from '../explain/manifests/cluster.ts'
import type { MigrationInput } from './plan.ts'

/** What an endpoint is judged by. */
const JUDGING: ReadonlySet<string> = new Set([...POLICY_KINDS, 'Tier', 'Profile'])

export async function readMigration(client: ApiClient): Promise<MigrationInput> {
  const objects: KubeObject[] = []
  for (const { entry, apiVersion, kind } of WATCHED)
    if (JUDGING.has(entry.kind)) for (const object of await listOrNone(client, { apiVersion, kind })) objects.push(...parsed(object))
  const { snapshot } = clusterOf(objects.map((object) => ({ kind: 'upsert', object })))
  return {
    endpoints: await client.list(HOST_ENDPOINTS),
    nodes: await client.list({ apiVersion: 'v1', kind: 'Node' }),
    networks: await client.list(NODE_NETWORK),
    configuration: await getOrNone(client, { ...CONFIGURATION, name: 'default' }),
    world: snapshot,
  }
}

/** One that cannot be read closes what it selects: `instead` stands for it. */
function parsed(object: unknown): readonly KubeObject[] {
  const identified = identify(object)
  if (identified.kind !== 'ours') return []
  const read = parseObject(object, identified.ref)
  if (read.kind === 'ok') return [read.value]
  return read.instead === undefined ? [] : [read.instead]
}
