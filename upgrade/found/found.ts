// SPDX-License-Identifier: Apache-2.0
/** How the product was installed. Layer: upgrade (pure). */
import type { ApiObject } from '#lib/api/resource.ts'
import { MANIFESTS, type Manifest } from '#lib/render/manifests.ts'

export const METHODS = ['manifest', 'operator', 'chart'] as const
export type Method = (typeof METHODS)[number]

/** Of manifests before this version; `netplane` to `bpf` have our networking, `canal` has flannel's. The operator and
 * the chart have `netplane` alone. */
export const OLD_VARIANTS = ['netplane', 'typha', 'vxlan', 'bpf', 'policy-only', 'canal'] as const
export type OldVariant = (typeof OLD_VARIANTS)[number]

/** Variants of this version, by which a plan goes on. */
export const TARGETS = MANIFESTS
export type Target = Manifest

export interface Found {
  readonly method: Method
  /** undefined: an installation of ours, which keeps its resources as they are named now */
  readonly variant: OldVariant | undefined
  readonly target: Target
  /** `etcd`: resources are not in the API server */
  readonly datastore: 'kubernetes' | 'etcd'
  /** "3.27.0": what most agents run, by their image, else by ClusterInformation */
  readonly version: string
  /** of the agents */
  readonly namespace: string
  /** that runs them */
  readonly daemonSet: ApiObject
  readonly isBpf: boolean
  /** of the container of the agents, those with a value of their own */
  readonly environment: Readonly<Record<string, string>>
  /** release of the chart: "netplane-operator/netplane" */
  readonly release: string | undefined
}
