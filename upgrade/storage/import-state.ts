// SPDX-License-Identifier: Apache-2.0
/** What is stored, and what of it is here already, as the server has both now. Layer: upgrade. */
import { getOrNone, listOrNone } from '#lib/api/absent.ts'
import type { ApiObject } from '#lib/api/resource.ts'
import { servedKinds } from '#lib/api/served-kinds.ts'
import { mapLimited } from '#lib/base/async/map-limited.ts'
import { NODE_NETWORK } from '#lib/kube/objects/node-network.ts'
import { resources } from '#lib/kube/resources.ts'
import { felixSchema } from '#agent/config/open-api.ts'
import { readInstallation, type InstallationInput } from '../stored/installation.ts'
import { API_VERSION, STORED_API_VERSION } from '../stored/outcome.ts'
import { lockedAt, STORED_INFORMATION } from './cluster-information.ts'
import { planImport, type ImportPlan } from './import-plan.ts'
import type { StorageOptions } from './options.ts'

const AT_ONCE = 4

/** Agents of this version write that for themselves; until then the upgrade does (networks.ts). */
const IMPORTED_KINDS = resources(felixSchema()).filter(({ kind }) => kind !== NODE_NETWORK.kind)

/** All that was stored, and what it is read with. */
export async function readInput({ client, environment, clock }: StorageOptions, signal: AbortSignal): Promise<InstallationInput> {
  const { kinds } = await servedKinds(client, { signal })
  const stored = kinds.filter(({ apiVersion, verbs }) => apiVersion === STORED_API_VERSION && verbs.has('list'))
  const list = (collection: Parameters<typeof listOrNone>[1]) => listOrNone(client, collection, { signal })
  const objects = (await mapLimited(stored, AT_ONCE, list)).flat()
  const [pods, nodes] = [await list({ apiVersion: 'v1', kind: 'Pod' }), await list({ apiVersion: 'v1', kind: 'Node' })]
  // addresses that came back lately rest from then on: each run reads the same
  const now = lockedAt(await getOrNone(client, STORED_INFORMATION, { signal })) ?? clock.wall()
  return { objects, pods, nodes, environment, now }
}

export async function readHeld({ client }: StorageOptions, signal: AbortSignal): Promise<readonly ApiObject[]> {
  const list = ({ kind, plural }: (typeof IMPORTED_KINDS)[number]) =>
    listOrNone(client, { apiVersion: API_VERSION, kind, plural }, { signal })
  return (await mapLimited(IMPORTED_KINDS, AT_ONCE, list)).flat()
}

export async function importState(options: StorageOptions, signal: AbortSignal): Promise<ImportPlan> {
  const input = await readInput(options, signal)
  const held = await readHeld(options, signal)
  const namespaces = await listOrNone(options.client, { apiVersion: 'v1', kind: 'Namespace' }, { signal })
  return planImport({
    read: readInstallation(input),
    held,
    namespaces: new Map(namespaces.map((object) => [object.metadata.name, object])),
  })
}
