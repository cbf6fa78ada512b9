// SPDX-License-Identifier: Apache-2.0
/** Objects that steps name. Layer: upgrade (pure). */
import type { Named } from '#lib/api/resource.ts'
import { GROUP, VERSION } from '#lib/kube/resources.ts'

export const INSTALLATION: Named = { apiVersion: 'operator.netplane.io/v1', kind: 'Installation', name: 'default' }

const V3 = `${GROUP}/${VERSION}`
export const FELIX_CONFIGURATION: Named = { apiVersion: V3, kind: 'FelixConfiguration', name: 'default' }
export const CONTROLLERS_CONFIGURATION: Named = { apiVersion: V3, kind: 'ControllersConfiguration', name: 'default' }
