// SPDX-License-Identifier: Apache-2.0
/** What manifests before this version have changed, by the minor version that began with it. Layer: upgrade (pure). */

export const SINCE = {
  /** containers of nodes read `cluster-services-endpoint`, where there is one */
  endpointMap: 16,
  /** `veth_mtu` "0": nodes find it out */
  foundMtu: 17,
  controllersBudget: 17,
  /** a node says that it goes */
  shutdownHook: 20,
  mountBpffs: 22,
  /** drivers for pods' volumes come by CSI */
  noFlexVolume: 23,
  /** v1beta1 before */
  stableBudgets: 23,
  pluginAccount: 26,
  tiers: 29,
  noBandwidth: 30,
  loadBalancerController: 30,
  ebpfBootstrap: 31,
  seccompProfile: 31,
} as const satisfies Readonly<Record<string, number>>

export type Change = keyof typeof SINCE

/** "3.27.0", "v3.27.0" → whether a manifest of it has the change. */
export function hasChange(version: string, change: Change): boolean {
  return minorOf(version) >= SINCE[change]
}

function minorOf(version: string): number {
  return Number(/^v?\d+\.(\d+)/.exec(version)?.[1] ?? 0)
}
