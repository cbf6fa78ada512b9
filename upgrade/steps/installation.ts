// SPDX-License-Identifier: Apache-2.0
/** The Installation as this version has it, across definitions that know other fields. Layer: upgrade.
 *
 * A server shows no field that a definition does not know. So what is carried is kept on the object itself before
 * definitions change, and written when they have. */
import { getOrNone } from '#lib/api/absent.ts'
import type { ApiClient } from '#lib/api/client.ts'
import type { ApiObject } from '#lib/api/resource.ts'
import { hasValues } from '#lib/base/deep-equal.ts'
import { isObject } from '#lib/base/object.ts'
import { INSTALLATION } from './names.ts'
import type { Raw } from '../stored/outcome.ts'
import type { Step, StepState } from './step.ts'

/** A JSON object: fields of the spec, null for those that go. */
export const CARRIED = 'upgrade.netplane.io/installation'

export interface InstallationInput {
  readonly client: Pick<ApiClient, 'get' | 'patch'>
  /** fields of the spec, null for those that go */
  readonly carried: Raw
}

/** Before the definitions of this version. What was kept before is not read anew: fields may not be seen any more. */
export function keepInstallationStep({ client, carried }: InstallationInput): Step {
  return {
    name: 'installation-kept',
    about: `keeps ${fieldsText(carried)} of the Installation until this version's definition is there`,
    commands: [],
    look: async (signal) => {
      const found = await getOrNone(client, INSTALLATION, { signal })
      return doneIf(found === undefined || hasValues(found['spec'], carried) || found.metadata.annotations?.[CARRIED] !== undefined)
    },
    run: async (signal) => {
      await client.patch(INSTALLATION, { metadata: { annotations: { [CARRIED]: JSON.stringify(carried) } } }, { type: 'merge', signal })
    },
  }
}

/** After them. */
export function putInstallationStep({ client, carried }: InstallationInput): Step {
  return {
    name: 'installation',
    about: `writes ${fieldsText(carried)} to the Installation`,
    commands:
      Object.keys(carried).length === 0
        ? []
        : [`kubectl patch installation default --type=merge -p '${JSON.stringify({ spec: carried })}'`],
    look: async (signal) => {
      const kept = keptOf(await getOrNone(client, INSTALLATION, { signal }))
      if (kept === 'unreadable') return { isDone: false, problems: [`annotation ${CARRIED} of Installation default cannot be read`] }
      return doneIf(kept === undefined)
    },
    run: async (signal) => {
      const kept = keptOf(await getOrNone(client, INSTALLATION, { signal }))
      if (!isObject(kept)) return
      const patch = { metadata: { annotations: { [CARRIED]: null } }, spec: kept }
      await client.patch(INSTALLATION, patch, { type: 'merge', signal, strict: true })
    },
  }
}

function doneIf(isDone: boolean): StepState {
  return { isDone, problems: [] }
}

function keptOf(installation: ApiObject | undefined): Raw | 'unreadable' | undefined {
  const text = installation?.metadata.annotations?.[CARRIED]
  if (text === undefined) return undefined
  try {
    const kept: unknown = JSON.parse(text)
    return isObject(kept) ? kept : 'unreadable'
  } catch {
    return 'unreadable'
  }
}

function fieldsText(carried: Raw): string {
  const names = Object.keys(carried)
  return names.length === 0 ? 'nothing' : names.join(', ')
}
