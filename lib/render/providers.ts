// SPDX-License-Identifier: Apache-2.0
/** What differs between platforms, one row each, and which one a cluster is. Layer: lib/render (pure). */
import type { ApiObject } from '../api/resource.ts'
import { clusterTypeOf } from '../kube/objects/cluster-information.ts'
import type { CNI_TYPES, PROVIDERS } from '../kube/schema/installation.ts'

export type Provider = (typeof PROVIDERS)[number]
export type CniType = (typeof CNI_TYPES)[number]

/** How kube-proxy is stopped: by a selector of its DaemonSet, by the platform's own operator, by a command that is
 * only shown, or not at all. */
export type ProxyAction = 'node-selector' | 'platform-operator' | 'command' | 'keep'

/** Where kube-proxy is, and its settings. */
export interface KubeProxy {
  readonly namespace: string
  readonly daemonSet: string
  readonly configMap: string
}

export interface Platform {
  /** of an Installation that does not say */
  readonly cni: CniType
  readonly binDir: string
  readonly confDir: string
  /** of the tunnel between nodes; undefined: the agents' default */
  readonly vxlanPort: number | undefined
  readonly vxlanVni: number | undefined
  readonly healthPort: number
  /** OpenShift lets no pod have the node's network but by SecurityContextConstraints */
  readonly needsScc: boolean
  readonly proxy: ProxyAction
  readonly kubeProxy: KubeProxy
  /** kube-proxy is in a process of the platform's own: no pod shows whether it runs */
  readonly hidesKubeProxy: boolean
  /** name server by which the operator finds the API server's name */
  readonly nameserver: string | undefined
}

/** As kubeadm and its like name it. */
const KUBE_PROXY: KubeProxy = { namespace: 'kube-system', daemonSet: 'kube-proxy', configMap: 'kube-proxy' }

const USUAL: Platform = {
  cni: 'Netplane',
  binDir: '/opt/cni/bin',
  confDir: '/etc/cni/net.d',
  vxlanPort: undefined,
  vxlanVni: undefined,
  healthPort: 9099,
  needsScc: false,
  proxy: 'node-selector',
  kubeProxy: KUBE_PROXY,
  hidesKubeProxy: false,
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
    kubeProxy: { namespace: 'openshift-kube-proxy', daemonSet: 'openshift-kube-proxy', configMap: 'proxy-config' },
  },
  AKS: { ...USUAL, proxy: 'keep' },
  EKS: { ...USUAL, kubeProxy: { ...KUBE_PROXY, configMap: 'kube-proxy-config' }, nameserver: CLOUD_NAMESERVER },
  // its own overlay has port 4789
  MKE: { ...USUAL, vxlanPort: 8472, vxlanVni: 10_000, proxy: 'command', hidesKubeProxy: true },
  RKE2: { ...USUAL, proxy: 'command' },
}

/** k3s is no platform of its own, but for its kube-proxy. */
export function platformOf(provider: Provider, isK3s: boolean): Platform {
  return isK3s ? { ...PLATFORMS[provider], proxy: 'command', hidesKubeProxy: true } : PLATFORMS[provider]
}

export function isK3sOf(version: string): boolean {
  return clusterTypeOf(version, new Map()).split(',').includes('k3s')
}

const PROVIDERS_BY_TYPE: readonly (readonly [string, Provider])[] = [
  ['openshift', 'OpenShift'],
  ['aks', 'AKS'],
  ['eks', 'EKS'],
  ['mke', 'MKE'],
  ['rke2', 'RKE2'],
  ['kops', 'KOPS'],
]

/** From the server's version and the labels of any node; there may be no node yet. */
export function providerOf(version: string, nodes: Iterable<ApiObject>): Provider {
  for (const labels of [{}, ...Array.from(nodes, ({ metadata }) => metadata.labels ?? {})]) {
    const types = clusterTypeOf(version, new Map(Object.entries(labels))).split(',')
    const found = PROVIDERS_BY_TYPE.find(([type]) => types.includes(type))
    if (found !== undefined) return found[1]
  }
  return 'Generic'
}
