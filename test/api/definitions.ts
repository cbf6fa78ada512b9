// SPDX-License-Identifier: Apache-2.0
/** Our kinds, as deploy/ defines them, in an API server. Layer: test. */
import { readFileSync } from 'node:fs'
import { loadAll } from 'js-yaml'
import type { ApiClient } from '#lib/api/client.ts'
import { asApiObject } from '#lib/api/resource.ts'
import { isObject } from '#lib/base/object.ts'
import { waitFor } from '../../lab/wait.ts'

const SERVED = { timeoutMs: 30_000, everyMs: 100 }

/** Resolves when these are served. */
export async function define(client: ApiClient, ...kinds: readonly string[]): Promise<void> {
  const all = loadAll(readFileSync(new URL('../../deploy/crds.yaml', import.meta.url), 'utf8')).map(asApiObject)
  for (const kind of kinds) {
    const definition = all.find(({ spec }) => isObject(spec) && isObject(spec['names']) && spec['names']['kind'] === kind)
    if (definition === undefined) throw new Error(`deploy/ does not define ${kind}`)
    await client.create(definition)
    const served = () => client.list({ apiVersion: 'netplane.io/v3', kind }).catch(() => undefined)
    if ((await waitFor(served, SERVED)) === undefined) throw new Error(`${kind} is not served in time`)
  }
}
