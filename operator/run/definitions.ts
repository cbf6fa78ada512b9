// SPDX-License-Identifier: Apache-2.0
/** The definitions of all our kinds, made or changed before anything else, and never taken away. Those of a newer
 * version stay. Layer: operator. */
import type { Clock } from '#lib/base/clock.ts'
import { isObject } from '#lib/base/object.ts'
import { errorText } from '#lib/base/errors.ts'
import type { ApiClient } from '#lib/api/client.ts'
import { ApiError, isRefused, UnreachableError } from '#lib/api/errors.ts'
import { namedOf, type ApiObject } from '#lib/api/resource.ts'
import type { Log } from '#lib/obs/log.ts'
import { allDefinitions, isOfNewer, madeBy } from '#lib/render/definitions.ts'
import { felixSchema } from '#agent/config/open-api.ts'
import { FIELD_MANAGER } from '../objects/owned-fields.ts'

export interface InstallDefinitions {
  readonly client: Pick<ApiClient, 'create' | 'get' | 'update'>
  readonly clock: Clock
  readonly log: Log
  /** of this program: "3.31.5" */
  readonly version: string
  readonly signal: AbortSignal
}

const LOOK_MS = 200
const AGAIN_MS = 2000

/** Resolves when the server serves all of them in this version's form, or a newer one's. Tries until it is so. */
export async function installDefinitions(options: InstallDefinitions): Promise<void> {
  const all = allDefinitions(felixSchema()).map((definition) => madeBy(definition, options.version))
  await Promise.all(all.map((definition) => install(definition, options)))
}

async function install(definition: ApiObject, options: InstallDefinitions): Promise<void> {
  const { client, clock, log, signal } = options
  for (;;) {
    try {
      await put(definition, options)
      while (!isServed(await client.get(namedOf(definition), { signal }))) await clock.sleep(LOOK_MS, signal)
      return
    } catch (thrown) {
      if (!(thrown instanceof ApiError || thrown instanceof UnreachableError)) throw thrown
      log.warn({ definition: definition.metadata.name, reason: errorText(thrown) }, 'definition.failed')
      await clock.sleep(AGAIN_MS, signal)
    }
  }
}

/** By an update: it writes nothing where nothing differs, and then each field stays with the client that applied it.
 * After a server-side apply each would be ours too, and the next version's file refused without force. */
async function put(definition: ApiObject, { client, version, log, signal }: InstallDefinitions): Promise<void> {
  try {
    const found = await client.get(namedOf(definition), { signal })
    if (isOfNewer(found, version)) {
      log.info({ definition: definition.metadata.name }, 'definition.newer')
      return
    }
    const annotations = { ...found.metadata.annotations, ...definition.metadata.annotations }
    await client.update({ ...definition, metadata: { ...found.metadata, annotations } }, { signal, fieldManager: FIELD_MANAGER })
  } catch (thrown) {
    if (!isRefused(thrown, 'NotFound')) throw thrown
    await client.create(definition, { signal, fieldManager: FIELD_MANAGER })
  }
}

function isServed({ status }: ApiObject): boolean {
  const conditions: readonly unknown[] = isObject(status) && Array.isArray(status['conditions']) ? status['conditions'] : []
  return conditions.some((one) => isObject(one) && one['type'] === 'Established' && one['status'] === 'True')
}
