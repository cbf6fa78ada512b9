// SPDX-License-Identifier: Apache-2.0
/** Objects that the operator of an older version has written become those of this one, which else leaves them alone as
 * another's. Layer: upgrade. */
import { getOrNone } from '#lib/api/absent.ts'
import type { ApiClient } from '#lib/api/client.ts'
import { isRefused } from '#lib/api/errors.ts'
import { namedOf, type ApiObject, type Named } from '#lib/api/resource.ts'
import { takeOver } from '#lib/api/take-over.ts'
import { hasValues } from '#lib/base/deep-equal.ts'
import { objectNameText } from './object-text.ts'
import type { Step } from './step.ts'

export interface AdoptInput {
  readonly client: Pick<ApiClient, 'get' | 'patch'>
  /** the operator's name as an owner of fields */
  readonly manager: string
  /** by which it sees what is its own */
  readonly labels: Readonly<Record<string, string>>
  /** what it renders; those that are there are adopted */
  readonly names: readonly Named[]
}

/** Others may write the object at the same time. */
const TRIES = 5

export function adoptOf(input: AdoptInput): Pick<Step, 'look' | 'run'> {
  return {
    look: async (signal) => {
      const left = (await foreign(input, signal)).map(({ object }) => `${objectNameText(object)} is not the operator's of this version`)
      return { isDone: left.length === 0, problems: [], left }
    },
    run: async (signal, tell) => {
      for (let tries = 1; tries <= TRIES; tries++) {
        const all = await foreign(input, signal)
        for (const { object, patch } of all) {
          tell(`adopts ${objectNameText(object)}`)
          await adopt(input, { object, patch }, signal)
        }
        if (all.length === 0) return
      }
    },
  }
}

interface Foreign {
  readonly object: ApiObject
  readonly patch: object
}

async function foreign({ client, manager, labels, names }: AdoptInput, signal: AbortSignal): Promise<readonly Foreign[]> {
  const found = await Promise.all(names.map((named) => getOrNone(client, named, { signal })))
  return found.flatMap((object) => {
    if (object === undefined) return []
    const patch = takeOver(object, manager)
    const isSeen = hasValues(object.metadata.labels, labels)
    if (patch === undefined && isSeen) return []
    const { resourceVersion } = object.metadata
    return [{ object, patch: { metadata: { resourceVersion, ...patch?.metadata, labels } } }]
  })
}

/** One that another has written meanwhile is read again. */
async function adopt({ client }: AdoptInput, { object, patch }: Foreign, signal: AbortSignal): Promise<void> {
  try {
    await client.patch(namedOf(object), patch, { type: 'merge', signal })
  } catch (thrown) {
    if (!isRefused(thrown, 'Conflict') && !isRefused(thrown, 'NotFound')) throw thrown
  }
}
