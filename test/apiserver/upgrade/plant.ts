// SPDX-License-Identifier: Apache-2.0
/** An installation before this version, in a real API server: definitions of what it stores, its objects, its pods and
 * nodes. Layer: test. */
import { ApiError, isRefused } from '#lib/api/errors.ts'
import type { ApiClient } from '#lib/api/client.ts'
import { asApiObject, namedOf, type ApiObject } from '#lib/api/resource.ts'
import { isObject, objectsIn, textOf } from '#lib/base/object.ts'
import type { InstallationInput } from '#upgrade/stored/installation.ts'
import { STORED_KINDS } from '#upgrade/stored/kinds.ts'
import { otherUid } from '#upgrade/stored/uid.ts'
import { waitFor } from '../../../lab/wait.ts'

const NAMESPACED = /^(Staged)?(Kubernetes)?Network(Policy|Set)$/
const SERVED = { timeoutMs: 30_000, everyMs: 100 }
/** That this server gives itself. */
const GIVEN = ['uid', 'resourceVersion', 'creationTimestamp']

/** As the server has them, with its own UIDs. Namespaces of the objects and pods are made as well. */
export async function plantStored(client: ApiClient, input: InstallationInput): Promise<readonly ApiObject[]> {
  await defineStored(client)
  const [objects, pods, nodes] = [input.objects, input.pods, input.nodes].map((all) => all.map(asApiObject))
  const namespaces = new Set([...(objects ?? []), ...(pods ?? [])].flatMap(({ metadata }) => metadata.namespace ?? []))
  for (const name of namespaces) await createOnce(client, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
  for (const node of nodes ?? []) await withStatus(client, node)
  for (const pod of pods ?? []) await withStatus(client, { ...pod, spec: podSpec(pod) })
  return await plantObjects(client, objects ?? [])
}

/** Definitions as old versions had them take nearly everything. */
export async function defineStored(client: ApiClient): Promise<void> {
  for (const { kind, plural } of STORED_KINDS) await createOnce(client, definitionOf(kind, plural))
  for (const { kind, plural } of STORED_KINDS) {
    const served = () => client.list({ apiVersion: 'crd.netplane.io/v1', kind, plural }).catch(() => undefined)
    if ((await waitFor(served, SERVED)) === undefined) throw new Error(`${kind} is not served in time`)
  }
}

function definitionOf(kind: string, plural: string): ApiObject {
  const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } }
  return asApiObject({
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.crd.netplane.io` },
    spec: {
      group: 'crd.netplane.io',
      scope: NAMESPACED.test(kind) ? 'Namespaced' : 'Cluster',
      names: { kind, plural, singular: kind.toLowerCase(), listKind: `${kind}List` },
      versions: [{ name: 'v1', served: true, storage: true, schema }],
    },
  })
}

/** As the server takes an object of an older manifest: it has no beta version of a budget any more. */
export function asServed(object: ApiObject): ApiObject {
  return object.kind === 'PodDisruptionBudget' ? asApiObject({ ...object, apiVersion: 'policy/v1' }) : object
}

/** A pod that policies may select by its name. */
export function labelled({ metadata, ...pod }: ApiObject): ApiObject {
  return { ...pod, metadata: { ...metadata, labels: { app: metadata.name } } }
}

/** Owners first: what names them has their UIDs in the annotation. */
async function plantObjects(client: ApiClient, objects: readonly ApiObject[]): Promise<readonly ApiObject[]> {
  const uids = new Map<string, string>()
  const isOwned = (object: ApiObject): boolean => JSON.stringify(object).includes('ownerReferences')
  const made: ApiObject[] = []
  for (const object of [...objects.filter((one) => !isOwned(one)), ...objects.filter(isOwned)]) {
    const text = [...uids].reduce((before, [uid, real]) => before.replaceAll(uid, real), JSON.stringify(withoutGiven(object)))
    const one = await client.create(asApiObject(JSON.parse(text)))
    const [before, after] = [object.metadata.uid ?? '', one.metadata.uid ?? '']
    for (const [uid, real] of [[before, after] as const, [otherUid(before) ?? '', otherUid(after) ?? ''] as const])
      if (uid !== '') uids.set(uid, real)
    made.push(one)
  }
  return made
}

function withoutGiven(object: ApiObject): ApiObject {
  const metadata = Object.fromEntries(Object.entries(object.metadata).filter(([key]) => !GIVEN.includes(key)))
  return asApiObject({ ...object, metadata })
}

function podSpec({ spec }: ApiObject): object {
  const said = isObject(spec) ? spec : {}
  const containers = objectsIn(said['containers']).map((one) => ({ image: 'none', ...one }))
  return { ...said, containers: containers.length > 0 ? containers : [{ name: textOf(said['name']) || 'main', image: 'none' }] }
}

/** The status is a part of its own. */
async function withStatus(client: ApiClient, { status, ...object }: ApiObject): Promise<void> {
  const whole = withoutGiven(asApiObject(object))
  const made = (): Promise<true | undefined> =>
    client.create(whole).then(
      () => true,
      // the namespace has no account yet
      (thrown: unknown) => (thrown instanceof ApiError && thrown.status === 403 ? undefined : Promise.reject(thrown as Error)),
    )
  if ((await waitFor(made, SERVED)) === undefined) await client.create(whole)
  await client.patch(namedOf(whole), { status }, { type: 'merge', subresource: 'status' })
}

async function createOnce(client: ApiClient, object: ApiObject): Promise<void> {
  try {
    await client.create(object)
  } catch (thrown) {
    if (!isRefused(thrown, 'AlreadyExists')) throw thrown
  }
}
