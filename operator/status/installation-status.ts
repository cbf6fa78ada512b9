// SPDX-License-Identifier: Apache-2.0
/** What an Installation's status says: every default as it was chosen. Layer: operator (pure). */
import { deepEqual } from '#lib/base/deep-equal.ts'
import { isObject } from '#lib/base/object.ts'
import type { ApiObject } from '#lib/api/resource.ts'
import type { Computed } from '#lib/render/computed.ts'
import type { StatusCondition } from './conditions.ts'

export interface InstallationState {
  /** undefined: its spec is refused */
  readonly computed: Computed | undefined
  readonly generation: number
  readonly conditions: readonly StatusCondition[]
}

/** Defaults in the form of the spec. */
export function installationStatus({ computed, generation, conditions }: InstallationState): Readonly<Record<string, unknown>> {
  const common = { observedGeneration: generation, conditions }
  if (computed === undefined) return common
  const { variant, registry, imagePath, provider, cni, binDir, confDir, linuxDataplane, hostPorts, managesKubeProxy, maxUnavailable } =
    computed
  return {
    ...common,
    variant,
    computed: {
      variant,
      ...(registry === '' ? {} : { registry }),
      ...(imagePath === '' ? {} : { imagePath }),
      provider,
      cni: { type: cni, binDir, confDir },
      netplaneNetwork: {
        linuxDataplane,
        hostPorts: hostPorts ? 'Enabled' : 'Disabled',
        kubeProxyManagement: managesKubeProxy ? 'Enabled' : 'Disabled',
      },
      nodeUpdateStrategy: { maxUnavailable },
    },
  }
}

/** True when the Installation says just that already. */
export function saysStatus({ status }: ApiObject, wanted: Readonly<Record<string, unknown>>): boolean {
  return isObject(status) && Object.entries(wanted).every(([key, value]) => deepEqual(status[key], value))
}
