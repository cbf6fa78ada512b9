// SPDX-License-Identifier: Apache-2.0
/** Edits of older manifests that are settings here. They are written once: what is changed afterwards stays.
 * Layer: upgrade. */
import { getOrNone } from '#lib/api/absent.ts'
import type { ApiClient } from '#lib/api/client.ts'
import { asApiObject, pluralOf, type Named } from '#lib/api/resource.ts'
import type { Raw } from '../stored/outcome.ts'
import { CONTROLLERS_CONFIGURATION, FELIX_CONFIGURATION } from './names.ts'
import type { Step } from './step.ts'

export interface SettingsInput {
  readonly client: Pick<ApiClient, 'get' | 'apply' | 'patch'>
  readonly manager: string
  /** fields of the spec of each */
  readonly felix: Raw
  readonly controllers: Raw
}

/** Of each object: the fields that were written, as JSON. */
const WRITTEN = 'upgrade.netplane.io/settings'

export function settingsStep({ client, manager, felix, controllers }: SettingsInput): Step {
  const all: readonly (readonly [Named, Raw])[] = [
    [FELIX_CONFIGURATION, felix],
    [CONTROLLERS_CONFIGURATION, controllers],
  ]
  const wanted = all.filter(([, spec]) => Object.keys(spec).length > 0)
  const missing = async (signal: AbortSignal): Promise<readonly (readonly [Named, Raw])[]> => {
    const found = await Promise.all(wanted.map(([named]) => getOrNone(client, named, { signal })))
    return wanted.filter(([, spec], at) => found[at]?.metadata.annotations?.[WRITTEN] !== JSON.stringify(spec))
  }
  return {
    name: 'settings',
    about: wanted.map(([{ kind }, spec]) => `sets ${Object.keys(spec).join(', ')} of ${kind} default`).join('; ') || 'sets nothing',
    commands: wanted.map(
      ([{ kind }, spec]) => `kubectl patch ${pluralOf(kind)}.netplane.io default --type merge -p '${JSON.stringify({ spec })}'`,
    ),
    look: async (signal) => ({ isDone: (await missing(signal)).length === 0, problems: [] }),
    run: async (signal) => {
      for (const [named, spec] of await missing(signal)) {
        const { apiVersion, kind, name } = named
        const annotations = { [WRITTEN]: JSON.stringify(spec) }
        const options = { fieldManager: manager, signal }
        // an apply would take away what an earlier upgrade has set
        if ((await getOrNone(client, named, { signal })) !== undefined)
          await client.patch(named, { metadata: { annotations }, spec }, { ...options, type: 'merge' })
        else await client.apply(asApiObject({ apiVersion, kind, metadata: { name, annotations }, spec }), { ...options, force: true })
      }
    },
  }
}
