// SPDX-License-Identifier: Apache-2.0
/** The aggregated API of older installations: their APIService would shadow the definitions of the same group.
 * Layer: upgrade.
 *
 * It is kept in a ConfigMap of the agents' namespace: objects of ours are moved meanwhile, and a plain object is there
 * whatever becomes of their definitions. */
import { getOrNone } from '#lib/api/absent.ts'
import { isRefused } from '#lib/api/errors.ts'
import { asApiObject, type ApiObject, type Named } from '#lib/api/resource.ts'
import { servedKinds } from '#lib/api/served-kinds.ts'
import { fieldsOf, isObject } from '#lib/base/object.ts'
import { API_VERSION } from '../stored/outcome.ts'
import type { Step } from '../steps/step.ts'
import { FIELD_MANAGER, waitFor, type StorageClient, type StorageOptions } from './options.ts'

const STEP = 'api-service'
const API_SERVICE: Named = { apiVersion: 'apiregistration.k8s.io/v1', kind: 'APIService', name: 'v3.netplane.io' }
const NAME = 'netplane-upgrade'
const KEY = 'api-service.json'

interface Call {
  readonly signal?: AbortSignal
}

/** Undefined: the server itself has the group, or nothing has it. */
export async function aggregatedService(client: Pick<StorageClient, 'get'>, call: Call = {}): Promise<ApiObject | undefined> {
  const found = await getOrNone(client, API_SERVICE, call)
  return found !== undefined && isObject(fieldsOf(found['spec'])['service']) ? found : undefined
}

export function apiServiceStep(options: StorageOptions): Step {
  const { client, namespace } = options
  return {
    name: STEP,
    about: `keeps APIService ${API_SERVICE.name} in ConfigMap ${namespace}/${NAME}, and deletes it: definitions serve the group from here`,
    commands: [`kubectl get apiservice ${API_SERVICE.name} -o json > api-service.json`, `kubectl delete apiservice ${API_SERVICE.name}`],
    look: async (signal) => ({ isDone: (await missing(client, signal)) === undefined, problems: [] }),
    run: async (signal) => {
      const found = await aggregatedService(client, { signal })
      if (found !== undefined) {
        await keep(options, found, signal)
        await deleteOne(client, found, signal)
      }
      await waitFor(options, { step: STEP, signal, missing: () => missing(client, signal) })
    },
  }
}

/** What the server still has of it. */
async function missing(client: StorageClient, signal: AbortSignal): Promise<string | undefined> {
  if ((await aggregatedService(client, { signal })) !== undefined)
    return `APIService ${API_SERVICE.name} names a service: an operator before this version makes it again while it runs`
  const { silent } = await servedKinds(client, { signal })
  return silent.includes(API_VERSION) ? `${API_VERSION} is still that of a server which does not answer` : undefined
}

async function keep({ client, namespace }: StorageOptions, service: ApiObject, signal: AbortSignal): Promise<void> {
  const { labels, annotations, name } = service.metadata
  const metadata = { name, ...(labels && { labels }), ...(annotations && { annotations }) }
  const kept = JSON.stringify({ apiVersion: service.apiVersion, kind: service.kind, metadata, spec: service['spec'] })
  const data = { [KEY]: kept }
  const map = mapOf(namespace)
  try {
    await client.patch(map, { data }, { type: 'merge', fieldManager: FIELD_MANAGER, signal })
  } catch (thrown) {
    if (!isRefused(thrown, 'NotFound')) throw thrown
    const { apiVersion, kind } = map
    await client.create({ apiVersion, kind, metadata: { namespace, name: NAME }, data }, { fieldManager: FIELD_MANAGER, signal })
  }
}

async function deleteOne(client: StorageClient, { metadata: { uid = '' } }: ApiObject, signal: AbortSignal): Promise<void> {
  try {
    await client.delete(API_SERVICE, { preconditions: { uid }, signal })
  } catch (thrown) {
    // another one has its name by now: it is looked at next
    if (!isRefused(thrown, 'NotFound', 'Conflict')) throw thrown
  }
}

function mapOf(namespace: string): Named {
  return { apiVersion: 'v1', kind: 'ConfigMap', namespace, name: NAME }
}

/** As it was before; undefined: there was none, or it is not kept any more. */
export async function keptService({ client, namespace }: StorageOptions, signal: AbortSignal): Promise<ApiObject | undefined> {
  const text = fieldsOf((await getOrNone(client, mapOf(namespace), { signal }))?.['data'])[KEY]
  return typeof text === 'string' ? asApiObject(JSON.parse(text)) : undefined
}

export async function forgetService({ client, namespace }: StorageOptions, signal: AbortSignal): Promise<void> {
  try {
    await client.patch(mapOf(namespace), { data: { [KEY]: null } }, { type: 'merge', fieldManager: FIELD_MANAGER, signal })
  } catch (thrown) {
    if (!isRefused(thrown, 'NotFound')) throw thrown
  }
}
