// SPDX-License-Identifier: Apache-2.0
/** The client of those who write objects of ours: it refuses to while the datastore is locked. Layer: lib/api. */
import { DatastoreLockedError } from '../base/errors.ts'
import type { ApiClient } from './client.ts'
import type { Collection } from './resource.ts'

export type LockableApi = Pick<ApiClient, 'get' | 'list' | 'create' | 'update' | 'patch' | 'delete' | 'request'>

/** What is Kubernetes' own is written all the same, as is whatever is asked by `request`. `whyLocked`: asked before
 * each write; undefined: it is not. Rejects with DatastoreLockedError. */
export function lockable(client: LockableApi, whyLocked: () => string | undefined): LockableApi {
  const unlocked = async <T>({ apiVersion }: Collection, write: () => Promise<T>): Promise<T> => {
    const why = OURS.test(apiVersion) ? whyLocked() : undefined
    if (why !== undefined) throw new DatastoreLockedError(why)
    return await write()
  }
  return {
    get: (...call) => client.get(...call),
    list: (...call) => client.list(...call),
    request: (...call) => client.request(...call),
    create: (...call) => unlocked(call[0], () => client.create(...call)),
    update: (...call) => unlocked(call[0], () => client.update(...call)),
    patch: (...call) => unlocked(call[0], () => client.patch(...call)),
    delete: (...call) => unlocked(call[0], () => client.delete(...call)),
  }
}

const OURS = /^netplane\.io\//
