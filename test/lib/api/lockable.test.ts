// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest'
import { lockable, type LockableApi } from '#lib/api/lockable.ts'
import type { ApiObject } from '#lib/api/resource.ts'

const OURS = { apiVersion: 'netplane.io/v3', kind: 'IPAMBlock', metadata: { name: 'a' } }
const THEIRS = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a' } }

/** Says what it was asked for. */
function recording(): { readonly client: LockableApi; readonly calls: string[] } {
  const calls: string[] = []
  const note = (verb: string) => (of: { readonly apiVersion: string }) => {
    calls.push(`${verb} ${of.apiVersion}`)
    return Promise.resolve<ApiObject>(OURS)
  }
  const request = (): Promise<unknown> => Promise.resolve(calls.push('request'))
  const list = (of: { readonly apiVersion: string }): Promise<readonly ApiObject[]> => note('list')(of).then((one) => [one])
  const remove = (of: { readonly apiVersion: string }): Promise<void> => note('delete')(of).then(() => undefined)
  return {
    client: { get: note('get'), create: note('create'), update: note('update'), patch: note('patch'), list, delete: remove, request },
    calls,
  }
}

/** All that can be asked, of one object. */
function everything(api: LockableApi, object: ApiObject): readonly (() => Promise<unknown>)[] {
  const { apiVersion, kind, metadata } = object
  const named = { apiVersion, kind, name: metadata.name }
  return [
    () => api.create(object),
    () => api.update(object),
    () => api.patch(named, {}, { type: 'merge' }),
    () => api.delete(named),
    () => api.get(named),
    () => api.list(named),
    () => api.request({ method: 'GET', path: '/version' }),
  ]
}

const outcomes = async (calls: readonly (() => Promise<unknown>)[]): Promise<readonly string[]> =>
  (await Promise.allSettled(calls.map((call) => call()))).map((one) => (one.status === 'fulfilled' ? 'done' : String(one.reason)))

test('while it is locked nothing of ours is written, and all else goes on', async () => {
  const { client, calls } = recording()
  let why: string | undefined = 'locked'
  const api = lockable(client, () => why)
  const [refused, done] = ['DatastoreLockedError: locked', 'done']
  expect(await outcomes(everything(api, OURS))).toEqual([refused, refused, refused, refused, done, done, done])
  expect(calls.splice(0)).toEqual(['get netplane.io/v3', 'list netplane.io/v3', 'request'])
  expect(new Set(await outcomes(everything(api, THEIRS)))).toEqual(new Set([done]))
  calls.length = 0
  why = undefined
  expect(new Set(await outcomes(everything(api, OURS)))).toEqual(new Set([done]))
  expect(calls).toEqual([...['create', 'update', 'patch', 'delete', 'get', 'list'].map((verb) => `${verb} netplane.io/v3`), 'request'])
})
