// SPDX-License-Identifier: Apache-2.0
/** One object of the cluster read or written, and why that failed. Layer: cli. */
import { getOrNone } from '#lib/api/absent.ts'
import type { ApiClient } from '#lib/api/client.ts'
import { ApiError, isRefused } from '#lib/api/errors.ts'
import { namedOf, type ApiObject, type Named } from '#lib/api/resource.ts'
import { errorText } from '#lib/base/errors.ts'
import { apiVersionOf } from './kinds.ts'
import type { Target } from './order.ts'

/** A field that the server does not know is an error, as one that we do not know. */
export const AS_US = { fieldManager: 'netplanectl', strict: true } as const

/** Others write as well: so often the object is read again. */
const ATTEMPTS = 5

export function namedTarget({ resource, name }: Target, namespace: string): Named {
  return { apiVersion: apiVersionOf(resource), kind: resource.kind, name, ...(resource.namespaced ? { namespace } : {}) }
}

/** What is written depends on what is there, and another client may be quicker. */
export async function whileOthersWrite(write: () => Promise<unknown>): Promise<void> {
  for (let attempt = 1; ; attempt++)
    try {
      await write()
      return
    } catch (thrown) {
      if (attempt === ATTEMPTS || !isRefused(thrown, 'Conflict', 'AlreadyExists')) throw thrown
    }
}

/** With this spec; labels and annotations of others stay. Made when it is not there. */
export async function applyObject(client: ApiClient, object: ApiObject): Promise<void> {
  const write = async (): Promise<void> => {
    const live = await getOrNone(client, namedOf(object))
    await (live === undefined ? client.create(asNew(object), AS_US) : client.update(mergedInto(live, object), AS_US))
  }
  // a version that the file names is the one that is meant
  await (object.metadata.resourceVersion === undefined ? whileOthersWrite(write) : write())
}

/** The whole of it. Rejects where it is not there. */
export async function replaceObject(client: ApiClient, object: ApiObject): Promise<void> {
  const write = async (): Promise<void> => {
    const { resourceVersion } =
      object.metadata.resourceVersion === undefined ? (await client.get(namedOf(object))).metadata : object.metadata
    await client.update({ ...object, metadata: { ...object.metadata, ...(resourceVersion !== undefined && { resourceVersion }) } }, AS_US)
  }
  await (object.metadata.resourceVersion === undefined ? whileOthersWrite(write) : write())
}

/** What a cluster has added to one that is to be made in another, or again. */
export function asNew(object: ApiObject): ApiObject {
  const added = ['uid', 'resourceVersion', 'creationTimestamp', 'deletionTimestamp', 'generation', 'selfLink', 'managedFields']
  const metadata = Object.fromEntries(Object.entries(object.metadata).filter(([field]) => !added.includes(field)))
  return { ...object, metadata: { ...metadata, name: object.metadata.name } }
}

function mergedInto(live: ApiObject, object: ApiObject): ApiObject {
  const [theirs, ours] = [live.metadata, object.metadata]
  return {
    ...object,
    metadata: {
      ...theirs,
      ...ours,
      ...((theirs.labels ?? ours.labels) && { labels: { ...theirs.labels, ...ours.labels } }),
      ...((theirs.annotations ?? ours.annotations) && { annotations: { ...theirs.annotations, ...ours.annotations } }),
    },
  }
}

/** In the server's words where it has spoken. */
export function reasonOf(thrown: unknown): string {
  if (!(thrown instanceof ApiError)) return errorText(thrown)
  // a Status has a reason: this is no answer about an object
  if (thrown.status === 404 && thrown.reason === '') return 'the cluster does not know this kind: its definition is in deploy/'
  // of a patch the server shows the whole object before it says what is wrong
  return /^[^]*": strict decoding error: (.+)$/.exec(thrown.said)?.[1] ?? thrown.said
}
