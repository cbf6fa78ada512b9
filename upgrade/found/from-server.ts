// SPDX-License-Identifier: Apache-2.0
/** What an upgrade is planned from, as an API server has it. Layer: upgrade.
 *
 * Kinds of ours are those that the server has definitions of, whatever the version. A kind that is not served has no
 * objects. */
import { isAbsent } from '#lib/api/absent.ts'
import { fieldsOf, objectsIn, textOf } from '#lib/base/object.ts'
import type { ApiClient, ListOptions } from '#lib/api/client.ts'
import { serverVersion } from '#lib/api/identity.ts'
import { isApiObject, type ApiObject, type Collection } from '#lib/api/resource.ts'
import { GROUP } from '#lib/kube/resources.ts'
import { INJECTOR } from './checks/side-cars.ts'
import type { UpgradeFacts } from './facts.ts'
import { isAggregated, isOurGroup } from './objects.ts'
import { factsOf, trimmed } from './trim.ts'

export type FactsClient = Pick<ApiClient, 'request' | 'pages'>

const RBAC = 'rbac.authorization.k8s.io/v1'

/** Of the whole cluster. */
const EVERYWHERE: readonly Collection[] = [
  ...['Namespace', 'Node', 'Pod'].map((kind) => ({ apiVersion: 'v1', kind })),
  { apiVersion: 'apps/v1', kind: 'DaemonSet' },
  ...['ClusterRole', 'ClusterRoleBinding'].map((kind) => ({ apiVersion: RBAC, kind })),
  { apiVersion: 'storage.k8s.io/v1', kind: 'CSIDriver' },
  // what judges packets beside the stored policies
  { apiVersion: 'v1', kind: 'ServiceAccount' },
  { apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy' },
]

/** Where parts of the product are, in all versions and by all methods. */
const NAMESPACES = ['kube-system', 'netplane-system', 'netplane-operator', 'netplane-apiserver'] as const

/** Of these namespaces. */
const PARTS: readonly Collection[] = [
  { apiVersion: 'apps/v1', kind: 'Deployment' },
  ...['ConfigMap', 'Service'].map((kind) => ({ apiVersion: 'v1', kind })),
  ...['Role', 'RoleBinding'].map((kind) => ({ apiVersion: RBAC, kind })),
  { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget' },
  { apiVersion: 'batch/v1', kind: 'Job' },
]

/** Helm keeps what a release is in Secrets: that they are there is enough. */
const RELEASES: ListOptions = { labelSelector: 'owner=helm', metadataOnly: true }
const DEFINITIONS: Collection = { apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' }
const API_SERVICES: Collection = { apiVersion: 'apiregistration.k8s.io/v1', kind: 'APIService' }

export async function factsFromServer(client: FactsClient, signal: AbortSignal): Promise<UpgradeFacts> {
  const list = async (collection: Collection, options: ListOptions = {}) => await listed(client, collection, { ...options, signal })
  const version = await serverVersion(client, { signal })
  const services = (await list(API_SERVICES)).filter(({ spec }) => isOurGroup(textOf(fieldsOf(spec)['group'])))
  const definitions = (await list(DEFINITIONS)).filter(({ spec }) => isOurGroup(textOf(fieldsOf(spec)['group'])))
  const hidden = isAggregated({ serverVersion: version, objects: services }) ? GROUP : undefined
  const objects = [...services, ...definitions]
  for (const collection of [...EVERYWHERE, ...definitions.flatMap((definition) => collectionOf(definition, hidden))])
    objects.push(...(await list(collection)))
  for (const namespace of NAMESPACES) for (const part of PARTS) objects.push(...(await list({ ...part, namespace })))
  objects.push(...(await list({ apiVersion: 'v1', kind: 'Secret' }, RELEASES)))
  const injector: Collection = { apiVersion: 'v1', kind: 'ConfigMap', namespace: INJECTOR.namespace }
  objects.push(...(await list(injector, { fieldSelector: `metadata.name=${INJECTOR.name}` })))
  return factsOf({ serverVersion: version, objects })
}

/** In the version that is stored. `hidden`: a group whose objects another server makes up. */
function collectionOf({ spec }: ApiObject, hidden: string | undefined): readonly Collection[] {
  const { group, names, versions } = fieldsOf(spec)
  const { kind, plural } = fieldsOf(names)
  const version = objectsIn(versions).find(({ storage, served }) => storage === true && served === true)
  if (version === undefined || group === hidden) return []
  return [{ apiVersion: `${textOf(group)}/${textOf(version['name'])}`, kind: textOf(kind), plural: textOf(plural) }]
}

/** Page by page, so that no more of an object is kept than an upgrade goes by. */
async function listed(client: FactsClient, { apiVersion, kind, ...rest }: Collection, options: ListOptions): Promise<readonly ApiObject[]> {
  const objects: ApiObject[] = []
  try {
    for await (const { items } of client.pages({ apiVersion, kind, ...rest }, options))
      for (const item of items) {
        // items of a list leave out what they are, or say that they are metadata
        const object = { ...item, apiVersion, kind }
        if (isApiObject(object)) objects.push(trimmed(object))
      }
  } catch (thrown) {
    if (!isAbsent(thrown)) throw thrown
  }
  return objects
}
