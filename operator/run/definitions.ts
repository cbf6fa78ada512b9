// SPDX-License-Identifier: Apache-2.0
/** The definitions of all our kinds, made or changed before anything else, and never taken away. Layer: operator. */
import type { Clock } from '#lib/base/clock.ts'
import { isObject } from '#lib/base/object.ts'
import { errorText } from '#lib/base/errors.ts'
import type { ApiClient } from '#lib/api/client.ts'
import { ApiError, UnreachableError } from '#lib/api/errors.ts'
import { asApiObject, namedOf, type ApiObject } from '#lib/api/resource.ts'
import type { Log } from '#lib/obs/log.ts'
import { allDefinitions } from '#lib/render/definitions.ts'
import { felixSchema } from '#agent/config/open-api.ts'
import { FIELD_MANAGER } from '../objects/owned-fields.ts'

export interface InstallDefinitions {
  readonly client: Pick<ApiClient, 'apply' | 'get'>
  readonly clock: Clock
  readonly log: Log
  readonly signal: AbortSignal
}

const LOOK_MS = 200
const AGAIN_MS = 2000

/** Resolves when the server serves all of them in this version's form. Tries until it is so. */
export async function installDefinitions(options: InstallDefinitions): Promise<void> {
  await Promise.all(allDefinitions(felixSchema()).map((definition) => install(asApiObject(definition), options)))
}

async function install(definition: ApiObject, { client, clock, log, signal }: InstallDefinitions): Promise<void> {
  for (;;) {
    try {
      await client.apply(definition, { fieldManager: FIELD_MANAGER, force: true, signal })
      while (!isServed(await client.get(namedOf(definition), { signal }))) await clock.sleep(LOOK_MS, signal)
      return
    } catch (thrown) {
      if (!(thrown instanceof ApiError || thrown instanceof UnreachableError)) throw thrown
      log.warn({ definition: definition.metadata.name, reason: errorText(thrown) }, 'definition.failed')
      await clock.sleep(AGAIN_MS, signal)
    }
  }
}

function isServed({ status }: ApiObject): boolean {
  const conditions: readonly unknown[] = isObject(status) && Array.isArray(status['conditions']) ? status['conditions'] : []
  return conditions.some((one) => isObject(one) && one['type'] === 'Established' && one['status'] === 'True')
}
