// SPDX-License-Identifier: Apache-2.0
/** The way back, before `unlock`: what is imported goes, and what is stored is in use again. Layer: upgrade. */
import { ApiError, isRefused } from '#lib/api/errors.ts'
import { asApiObject, namedOf } from '#lib/api/resource.ts'
import { getOrNone } from '#lib/api/absent.ts'
import { errorText } from '#lib/base/errors.ts'
import { definitions } from '#lib/render/definitions.ts'
import { felixSchema } from '#agent/config/open-api.ts'
import { restoreOwners } from '../owners/move.ts'
import type { Tell } from '../steps/step.ts'
import { forgetService, keptService } from './api-service.ts'
import { isImported, lockedAt, STORED_INFORMATION } from './cluster-information.ts'
import { unlockStored } from './lock.ts'
import { ownerNamespace } from './owner-names.ts'
import { FIELD_MANAGER, StepFailedError, waitFor, type StorageOptions } from './options.ts'

const STEP = 'back'

/** May be cut off, and begun again. Definitions go with all of their objects. Returns owners that could not be put
 * back, a sentence each: what is stored is in use all the same. */
export async function back(options: StorageOptions, signal: AbortSignal, tell: Tell): Promise<readonly string[]> {
  const { client } = options
  const stored = await getOrNone(client, STORED_INFORMATION, { signal })
  if (lockedAt(stored) === undefined) throw new StepFailedError(STEP, ['no upgrade is under way: what is stored is not locked by one'])
  if (await isImported(client, signal)) throw new StepFailedError(STEP, ['the imported objects are unlocked, and may have been changed'])
  await deleteDefinitions(options, signal)
  const service = await keptService(options, signal)
  if (service !== undefined) {
    await client.apply(service, { fieldManager: FIELD_MANAGER, force: true, signal })
    tell(`${service.kind} ${service.metadata.name} is there again`)
  }
  const problems = await ownersBack(options, tell)
  await forgetService(options, signal)
  // the last thing: until then it is found to be under way
  await unlockStored(options, signal)
  tell('what is stored is unlocked')
  return problems
}

/** They are found by the old API. Where it is not there, or does not answer, they stay kept aside. */
async function ownersBack({ client }: StorageOptions, tell: Tell): Promise<readonly string[]> {
  try {
    const { changed, problems } = await restoreOwners(client, ({ apiVersion, kind, name }, namespace) => ({
      ...{ apiVersion, kind, name },
      namespace: ownerNamespace(kind, namespace),
    }))
    for (const text of changed) tell(`put the owners of ${text} back`)
    return problems
  } catch (thrown) {
    if (!(thrown instanceof ApiError)) throw thrown
    return [errorText(thrown)]
  }
}

async function deleteDefinitions(options: StorageOptions, signal: AbortSignal): Promise<void> {
  const { client } = options
  const all = definitions(felixSchema()).map(asApiObject).map(namedOf)
  for (const named of all)
    try {
      await client.delete(named, { signal })
    } catch (thrown) {
      if (!isRefused(thrown, 'NotFound')) throw thrown
    }
  const missing = async (): Promise<string | undefined> => {
    for (const named of all) if ((await getOrNone(client, named, { signal })) !== undefined) return `${named.name}: still there`
    return undefined
  }
  await waitFor(options, { step: STEP, signal, missing })
}
