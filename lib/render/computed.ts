// SPDX-License-Identifier: Apache-2.0
/** An Installation with every default, from its spec and what was found of the cluster. Layer: lib/render (pure). */
import type { DATAPLANES, installationSpec, VARIANTS } from '../kube/schema/installation.ts'
import { PLATFORMS, type CniType, type Platform, type Provider } from './providers.ts'

export type InstallationSpec = ReturnType<typeof installationSpec.read>

/** Of the cluster. */
export interface ClusterFacts {
  readonly provider: Provider
  /** a DaemonSet of kube-proxy, or programs of it */
  readonly hasKubeProxy: boolean
  /** nothing of ours was there before */
  readonly isFresh: boolean
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
  readonly nodePods: PodOverrides
  readonly controllerPods: PodOverrides
}

export function computeInstallation(spec: InstallationSpec, facts: ClusterFacts): Computed {
  const provider = spec.provider ?? facts.provider
  const platform = PLATFORMS[provider]
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
    linuxDataplane: network?.linuxDataplane ?? (facts.isFresh && !facts.hasKubeProxy ? 'BPF' : 'Standard'),
    hostPorts: network?.hostPorts !== 'Disabled',
    mtu: network?.mtu,
    managesKubeProxy: network?.kubeProxyManagement === 'Enabled',
    maxUnavailable: spec.nodeUpdateStrategy?.maxUnavailable ?? 1,
    canary: spec.nodeUpdateStrategy?.canary,
    nodePods: overridesOf(spec.nodePods),
    controllerPods: overridesOf(spec.controllerPods),
  }
}

function overridesOf(pods: InstallationSpec['nodePods']): PodOverrides {
  return {
    resources: pods?.resources,
    tolerations: pods?.tolerations ?? [],
    nodeSelector: pods?.nodeSelector,
    annotations: pods?.annotations,
  }
}
