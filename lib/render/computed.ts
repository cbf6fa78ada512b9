// SPDX-License-Identifier: Apache-2.0
/** An Installation with every default, from its spec and what was found of the cluster. Layer: lib/render (pure). */
import { durationMs } from '../base/time/duration.ts'
import type { DATAPLANES, installationSpec, VARIANTS } from '../kube/schema/installation.ts'
import { platformOf, type CniType, type Platform, type Provider } from './providers.ts'

const USUAL_TIMEOUT_MS = 600_000

export type InstallationSpec = ReturnType<typeof installationSpec.read>

/** Of the cluster. */
export interface ClusterFacts {
  readonly provider: Provider
  /** by the server's version */
  readonly isK3s?: boolean
  /** a DaemonSet of kube-proxy, or programs of it, or it may run where none shows */
  readonly hasKubeProxy: boolean
  /** as it was chosen before; undefined: nothing of ours is there */
  readonly installed: (typeof DATAPLANES)[number] | undefined
}

export interface PodOverrides {
  readonly resources: object | undefined
  readonly tolerations: readonly object[]
  readonly nodeSelector: object | undefined
  readonly annotations: object | undefined
}

export interface Computed {
  readonly variant: (typeof VARIANTS)[number]
  readonly registry: string
  readonly imagePath: string
  readonly imagePullSecrets: readonly string[]
  readonly provider: Provider
  readonly platform: Platform
  readonly cni: CniType
  readonly binDir: string
  readonly confDir: string
  readonly linuxDataplane: (typeof DATAPLANES)[number]
  readonly hostPorts: boolean
  readonly mtu: number | undefined
  readonly managesKubeProxy: boolean
  readonly maxUnavailable: number | string
  readonly canary: string | undefined
  /** "10m" */
  readonly nodeTimeout: string
  readonly nodePods: PodOverrides
  readonly controllerPods: PodOverrides
}

export function computeInstallation(spec: InstallationSpec, facts: ClusterFacts): Computed {
  const provider = spec.provider ?? facts.provider
  const platform = platformOf(provider, facts.isK3s === true)
  const network = spec.netplaneNetwork
  return {
    variant: spec.variant ?? 'Netplane',
    registry: spec.registry ?? '',
    imagePath: spec.imagePath ?? '',
    imagePullSecrets: spec.imagePullSecrets.map(({ name }) => name),
    provider,
    platform,
    cni: spec.cni?.type ?? platform.cni,
    binDir: spec.cni?.binDir ?? platform.binDir,
    confDir: spec.cni?.confDir ?? platform.confDir,
    linuxDataplane: network?.linuxDataplane ?? facts.installed ?? (facts.hasKubeProxy ? 'Standard' : 'BPF'),
    hostPorts: network?.hostPorts !== 'Disabled',
    mtu: network?.mtu,
    managesKubeProxy: network?.kubeProxyManagement === 'Enabled',
    maxUnavailable: spec.nodeUpdateStrategy?.maxUnavailable ?? 1,
    canary: spec.nodeUpdateStrategy?.canary,
    nodeTimeout: spec.nodeUpdateStrategy?.nodeTimeout ?? '10m',
    nodePods: overridesOf(spec.nodePods),
    controllerPods: overridesOf(spec.controllerPods),
  }
}

/** For so long a node is waited for. */
export function nodeTimeoutMs({ nodeTimeout }: Pick<Computed, 'nodeTimeout'>): number {
  return durationMs(nodeTimeout) ?? USUAL_TIMEOUT_MS
}

function overridesOf(pods: InstallationSpec['nodePods']): PodOverrides {
  return {
    resources: pods?.resources,
    tolerations: pods?.tolerations ?? [],
    nodeSelector: pods?.nodeSelector,
    annotations: pods?.annotations,
  }
}
