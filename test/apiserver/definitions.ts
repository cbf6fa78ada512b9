// SPDX-License-Identifier: Apache-2.0
/** Objects, as deploy/ has them, in an API server. Layer: test. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { loadAll } from 'js-yaml'
import type { ApiClient } from '#lib/api/client.ts'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { isObject } from '#lib/base/object.ts'
import { packageRoot } from '#lib/base/os/package.ts'
import { waitFor } from '../../lab/wait.ts'

const SERVED = { timeoutMs: 30_000, everyMs: 100 }

/** Of a file of deploy/, such as "crds". */
export function manifests(file: string): readonly ApiObject[] {
  return loadAll(readFileSync(join(packageRoot(), `deploy/${file}.yaml`), 'utf8')).map(asApiObject)
}

/** Made as soon as its kind is served. */
export async function put(client: ApiClient, object: unknown): Promise<void> {
  const made = (): Promise<true | undefined> =>
    client.create(asApiObject(object)).then(
      () => true,
      () => undefined,
    )
  if ((await waitFor(made, SERVED)) === undefined) await client.create(asApiObject(object))
}

/** Resolves when these kinds of ours are served. */
export async function define(client: ApiClient, ...kinds: readonly string[]): Promise<void> {
  const all = manifests('crds')
  for (const kind of kinds) {
    const definition = all.find(({ spec }) => isObject(spec) && isObject(spec['names']) && spec['names']['kind'] === kind)
    if (definition === undefined) throw new Error(`deploy/ does not define ${kind}`)
    await client.create(definition)
    const served = () => client.list({ apiVersion: 'netplane.io/v3', kind }).catch(() => undefined)
    if ((await waitFor(served, SERVED)) === undefined) throw new Error(`${kind} is not served in time`)
  }
}
