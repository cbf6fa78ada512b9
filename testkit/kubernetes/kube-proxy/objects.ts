// SPDX-License-Identifier: Apache-2.0
/** kube-proxy as kubeadm installs it: a DaemonSet on every node, with its account and its configuration.
 * Layer: testkit (pure). */
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { isV6 } from '../cluster-addresses.ts'
import type { ProxyMode } from './process.ts'

export const KUBE_PROXY = { namespace: 'kube-system', name: 'kube-proxy' } as const

export interface KubeProxySetup {
  readonly mode: ProxyMode
  readonly image: string
  /** of all pods, a range each family */
  readonly podCidrs: readonly string[]
  /** of the API server: kube-proxy cannot have it from itself */
  readonly endpoint: { readonly host: string; readonly port: number }
}

const LABELS = { 'k8s-app': 'kube-proxy' }
const FOLDER = '/var/lib/kube-proxy'
const ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount'

export function kubeProxyObjects(setup: KubeProxySetup): readonly ApiObject[] {
  const data = { 'config.conf': JSON.stringify(configuration(setup)), 'kubeconfig.conf': JSON.stringify(kubeconfig(setup)) }
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'system:node-proxier' }
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: KUBE_PROXY },
    {
      ...{ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRoleBinding', metadata: { name: 'kubeadm:node-proxier' } },
      ...{ roleRef, subjects: [{ kind: 'ServiceAccount', ...KUBE_PROXY }] },
    },
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { ...KUBE_PROXY, labels: { app: 'kube-proxy' } }, data },
    daemonSet(setup.image),
  ].map(asApiObject)
}

function configuration({ mode, podCidrs }: KubeProxySetup): object {
  return {
    apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
    kind: 'KubeProxyConfiguration',
    bindAddress: podCidrs.every(isV6) ? '::' : '0.0.0.0',
    clientConnection: { kubeconfig: `${FOLDER}/kubeconfig.conf` },
    clusterCIDR: podCidrs.join(','),
    mode,
    // limits of the whole machine, which no network namespace may set
    conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: '0s', tcpCloseWaitTimeout: '0s' },
  }
}

function kubeconfig({ endpoint }: KubeProxySetup): object {
  const cluster = { 'certificate-authority': `${ACCOUNT}/ca.crt`, server: `https://${endpoint.host}:${endpoint.port}` }
  return {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'default', cluster }],
    users: [{ name: 'default', user: { tokenFile: `${ACCOUNT}/token` } }],
    contexts: [{ name: 'default', context: { cluster: 'default', namespace: 'default', user: 'default' } }],
    'current-context': 'default',
  }
}

function daemonSet(image: string): object {
  return {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { ...KUBE_PROXY, labels: LABELS },
    spec: {
      selector: { matchLabels: LABELS },
      updateStrategy: { type: 'RollingUpdate' },
      template: { metadata: { labels: LABELS }, spec: podSpec(image) },
    },
  }
}

function podSpec(image: string): object {
  return {
    priorityClassName: 'system-node-critical',
    hostNetwork: true,
    serviceAccountName: KUBE_PROXY.name,
    nodeSelector: { 'kubernetes.io/os': 'linux' },
    tolerations: [{ operator: 'Exists' }],
    containers: [
      {
        name: 'kube-proxy',
        image,
        imagePullPolicy: 'IfNotPresent',
        command: ['/usr/local/bin/kube-proxy', `--config=${FOLDER}/config.conf`, '--hostname-override=$(NODE_NAME)'],
        env: [{ name: 'NODE_NAME', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } }],
        securityContext: { privileged: true },
        volumeMounts: [
          { name: 'kube-proxy', mountPath: FOLDER },
          { name: 'xtables-lock', mountPath: '/run/xtables.lock' },
          { name: 'lib-modules', mountPath: '/lib/modules', readOnly: true },
        ],
      },
    ],
    volumes: [
      { name: 'kube-proxy', configMap: { name: KUBE_PROXY.name } },
      { name: 'xtables-lock', hostPath: { path: '/run/xtables.lock', type: 'FileOrCreate' } },
      { name: 'lib-modules', hostPath: { path: '/lib/modules' } },
    ],
  }
}
