// SPDX-License-Identifier: Apache-2.0
/** Settings of the agents that a platform asks for, beside what FelixConfiguration says. Layer: lib/render (pure). */
import { fieldsOf } from '../base/object.ts'
import type { ApiObject, Named } from '../api/resource.ts'
import type { Platform } from './providers.ts'

/** That of all nodes. */
export const FELIX_CONFIGURATION: Named = { apiVersion: 'netplane.io/v3', kind: 'FelixConfiguration', name: 'default' }

type Tunnel = Pick<Platform, 'vxlanPort' | 'vxlanVni'>

/** What FelixConfiguration does not say yet. A value that is there is the administrator's, whatever it is. */
export function missingSettings({ vxlanPort, vxlanVni }: Tunnel, found: ApiObject | undefined): Readonly<Record<string, number>> {
  const spec = fieldsOf(found?.['spec'])
  const missing = Object.entries({ vxlanPort, vxlanVNI: vxlanVni }).flatMap(([name, value]): [string, number][] =>
    value === undefined || spec[name] !== undefined ? [] : [[name, value]],
  )
  return Object.fromEntries(missing)
}

/** UDP port of the tunnel between nodes, as agents will have it; undefined: their own default. */
export function tunnelPort({ vxlanPort }: Tunnel, found: ApiObject | undefined): number | undefined {
  const said = fieldsOf(found?.['spec'])['vxlanPort']
  return typeof said === 'number' ? said : vxlanPort
}
