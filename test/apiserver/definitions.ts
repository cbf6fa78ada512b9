// SPDX-License-Identifier: Apache-2.0
/** Objects, as deploy/ has them, in an API server. Layer: test. */
import type { ApiClient } from '#lib/api/client.ts'
import { isRefused } from '#lib/api/errors.ts'
import { asApiObject, type Collection } from '#lib/api/resource.ts'
import { isObject } from '#lib/base/object.ts'
import { waitFor } from '../../lab/wait.ts'
import { isDefinition, manifest } from '../../testkit/kubernetes/manifest.ts'

const SERVED = { timeoutMs: 30_000, everyMs: 100 }

/** Made as soon as its kind is served. One that is there after an attempt that failed is made: its answer was lost. */
export async function put(client: ApiClient, object: unknown): Promise<void> {
  let mayBeThere = false
  let last: unknown
  const made = async (): Promise<true | undefined> => {
    try {
      await client.create(asApiObject(object))
      return true
    } catch (thrown) {
      last = thrown
      const isThere = isRefused(thrown, 'AlreadyExists')
      if (isThere && mayBeThere) return true
      mayBeThere ||= !isThere
      return undefined
    }
  }
  if ((await waitFor(made, SERVED)) === undefined) throw last
}

/** Resolves when these kinds of ours are served. */
export async function define(client: ApiClient, ...kinds: readonly string[]): Promise<void> {
  const all = manifest().filter(isDefinition)
  for (const kind of kinds) {
    const definition = all.find(({ spec }) => isObject(spec) && isObject(spec['names']) && spec['names']['kind'] === kind)
    if (definition === undefined) throw new Error(`deploy/ does not define ${kind}`)
    await put(client, definition)
    await untilServed(client, { apiVersion: 'netplane.io/v3', kind })
  }
}

/** A kind answers "not found" for a moment after its definition was made. */
export async function untilServed(client: ApiClient, collection: Collection): Promise<void> {
  const served = (): Promise<unknown> => client.list(collection).catch(() => undefined)
  if ((await waitFor(served, SERVED)) === undefined) throw new Error(`${collection.kind} is not served in time`)
}
