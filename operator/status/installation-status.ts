// SPDX-License-Identifier: Apache-2.0
/** What an Installation's status says: every default as it was chosen. Layer: operator (pure). */
import { deepEqual } from '#lib/base/deep-equal.ts'
import { isObject } from '#lib/base/object.ts'
import type { ApiObject } from '#lib/api/resource.ts'
import type { ComponentState } from '#lib/control/rollout.ts'
import type { Computed } from '#lib/render/computed.ts'
import type { Endpoint } from '#lib/render/input.ts'
import type { StatusCondition } from './conditions.ts'

export interface InstallationState {
  /** undefined: its spec is refused */
  readonly computed: Computed | undefined
  /** by which agents ask the API server */
  readonly endpoint: Endpoint | undefined
  readonly isInstalled: boolean
  /** that all nodes run */
  readonly version: string | undefined
  readonly generation: number
  readonly conditions: readonly StatusCondition[]
}

/** Defaults in the form of the spec. */
export function installationStatus({
  computed,
  endpoint,
  isInstalled,
  version,
  generation,
  conditions,
}: InstallationState): Readonly<Record<string, unknown>> {
  const common = {
    ...{ observedGeneration: generation, conditions, installed: isInstalled },
    ...(version === undefined ? {} : { version }),
    ...(endpoint === undefined ? {} : { endpoint }),
  }
  if (computed === undefined) return common
  const { variant, registry, imagePath, provider, cni, binDir, confDir, linuxDataplane, hostPorts, mtu, managesKubeProxy } = computed
  const { maxUnavailable, canary, nodeTimeout } = computed
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
        ...(mtu === undefined ? {} : { mtu }),
        kubeProxyManagement: managesKubeProxy ? 'Enabled' : 'Disabled',
      },
      nodeUpdateStrategy: { maxUnavailable, ...(canary === undefined ? {} : { canary }), nodeTimeout },
    },
  }
}

/** Which version all nodes run: this one once the network is in place, until then what it was before. */
export function versionOf({ status }: ApiObject, network: ComponentState | undefined, own: string): string | undefined {
  if (network !== undefined && network.unavailable === undefined && network.progressing === undefined) return `v${own}`
  return isObject(status) && typeof status['version'] === 'string' ? status['version'] : undefined
}

/** What the status says of it; undefined: nothing. */
export function endpointOf({ status }: ApiObject): Endpoint | undefined {
  const { host, port } = isObject(status) && isObject(status['endpoint']) ? status['endpoint'] : {}
  return typeof host === 'string' && typeof port === 'string' ? { host, port } : undefined
}

/** The status is about the spec as it is. */
export function isObserved({ status, metadata }: ApiObject): boolean {
  return isObject(status) && status['observedGeneration'] === metadata.generation
}

/** Agents were made. */
export function wasInstalled({ status }: ApiObject): boolean {
  return isObject(status) && status['installed'] === true
}

/** True when the Installation says just that already. */
export function saysStatus({ status }: ApiObject, wanted: Readonly<Record<string, unknown>>): boolean {
  const keys = ['endpoint', ...Object.keys(wanted)]
  return isObject(status) && keys.every((key) => deepEqual(status[key], wanted[key]))
}
