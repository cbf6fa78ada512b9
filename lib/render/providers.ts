// SPDX-License-Identifier: Apache-2.0
/** What differs between platforms, one row each. Layer: lib/render (pure). */
import type { CNI_TYPES, PROVIDERS } from '../kube/schema/installation.ts'

export type Provider = (typeof PROVIDERS)[number]
export type CniType = (typeof CNI_TYPES)[number]

/** How kube-proxy is stopped: by a selector of its DaemonSet, by the platform's own operator, by a command that is
 * only shown, or not at all. */
export type ProxyAction = 'node-selector' | 'platform-operator' | 'command' | 'keep'

export interface Platform {
  /** of an Installation that does not say */
  readonly cni: CniType
  readonly binDir: string
  readonly confDir: string
  readonly vxlanPort: number
  readonly vxlanVni: number
  readonly healthPort: number
  /** OpenShift lets no pod have the node's network but by one of these */
  readonly needsScc: boolean
  readonly proxy: ProxyAction
  /** name server by which the operator finds the API server's name */
  readonly nameserver: string | undefined
}

const USUAL: Platform = {
  cni: 'Netplane',
  binDir: '/opt/cni/bin',
  confDir: '/etc/cni/net.d',
  vxlanPort: 4789,
  vxlanVni: 4096,
  healthPort: 9099,
  needsScc: false,
  proxy: 'node-selector',
  nameserver: undefined,
}

/** The resolver that a cloud has at each of its machines. */
const CLOUD_NAMESERVER = '169.254.169.253'

export const PLATFORMS: Readonly<Record<Provider, Platform>> = {
  Generic: USUAL,
  KOPS: { ...USUAL, proxy: 'command', nameserver: CLOUD_NAMESERVER },
  // Multus is first in the runtime's folder, and reads this one
  OpenShift: {
    ...USUAL,
    binDir: '/var/lib/cni/bin',
    confDir: '/var/run/multus/cni/net.d',
    healthPort: 9199,
    needsScc: true,
    proxy: 'platform-operator',
  },
  AKS: { ...USUAL, proxy: 'keep' },
  EKS: { ...USUAL, nameserver: CLOUD_NAMESERVER },
  // its own overlay has port 4789
  MKE: { ...USUAL, vxlanPort: 8472, vxlanVni: 10_000 },
  RKE2: USUAL,
}
