// SPDX-License-Identifier: Apache-2.0
/** What older versions were made of, and this one is not: deleted once nothing of it runs any more. Layer: upgrade. */
import { getOrNone } from '#lib/api/absent.ts'
import type { ApiClient } from '#lib/api/client.ts'
import { isRefused } from '#lib/api/errors.ts'
import type { ApiObject, Named } from '#lib/api/resource.ts'
import { objectNameText } from './object-text.ts'
import type { Step } from './step.ts'

export interface PruneInput {
  readonly client: Pick<ApiClient, 'get' | 'delete'>
  /** that may be there */
  readonly obsolete: readonly Named[]
}

export function pruneOf({ client, obsolete }: PruneInput): Pick<Step, 'look' | 'run'> {
  const present = async (signal: AbortSignal): Promise<readonly ApiObject[]> => {
    const found = await Promise.all(obsolete.map((named) => getOrNone(client, named, { signal })))
    return found.filter((object) => object !== undefined)
  }
  return {
    look: async (signal) => {
      const left = (await present(signal)).map((object) => `${objectNameText(object)} is still there`)
      return { isDone: left.length === 0, problems: [], left }
    },
    run: async (signal, tell) => {
      for (const object of await present(signal)) {
        tell(`deletes ${objectNameText(object)}`)
        await remove(client, object, signal)
      }
    },
  }
}

/** That one, and no other that has come by its name. */
async function remove(client: PruneInput['client'], object: ApiObject, signal: AbortSignal): Promise<void> {
  const { apiVersion, kind, metadata } = object
  const { name, namespace, uid = '' } = metadata
  try {
    await client.delete({ apiVersion, kind, name, namespace }, { preconditions: { uid }, signal })
  } catch (thrown) {
    if (!isRefused(thrown, 'NotFound')) throw thrown
  }
}
