// SPDX-License-Identifier: Apache-2.0
/** Objects as platforms have them: nodes, and what tells where the API server is. Layer: test. */
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { isObject } from '#lib/base/object.ts'

export function node(name: string, addresses: readonly string[], labels: Readonly<Record<string, string>> = {}): ApiObject {
  const told = addresses.map((address) => ({ type: 'InternalIP', address }))
  return asApiObject({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels: { 'kubernetes.io/hostname': name, ...labels } },
    status: { addresses: [...told, { type: 'Hostname', address: name }], nodeInfo: { kubeletVersion: 'v1.34.4' } },
  })
}

export const PLANE = { 'node-role.kubernetes.io/control-plane': '' }

function configMap(namespace: string, name: string, data: Readonly<Record<string, string>>): ApiObject {
  return asApiObject({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace, name }, data })
}

/** As kubeadm init leaves it. `endpoint` undefined: it was not given any. */
export function kubeadmConfig(endpoint: string | undefined): ApiObject {
  const lines = [
    'apiServer: {}',
    'apiVersion: kubeadm.k8s.io/v1beta4',
    'caCertificateValidityPeriod: 87600h0m0s',
    'certificatesDir: /etc/kubernetes/pki',
    'clusterName: kubernetes',
    ...(endpoint === undefined ? [] : [`controlPlaneEndpoint: ${JSON.stringify(endpoint)}`]),
    'kind: ClusterConfiguration',
    'kubernetesVersion: v1.34.4',
    'networking:',
    '  dnsDomain: cluster.local',
    '  serviceSubnet: 10.96.0.0/12',
  ]
  return configMap('kube-system', 'kubeadm-config', { ClusterConfiguration: `${lines.join('\n')}\n` })
}

/** What API servers say of themselves. */
export function apiServers(addresses: readonly string[], port = 6443): ApiObject {
  return asApiObject({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { namespace: 'default', name: 'kubernetes', labels: { 'kubernetes.io/service-name': 'kubernetes' } },
    addressType: addresses[0]?.includes(':') === true ? 'IPv6' : 'IPv4',
    endpoints: addresses.map((address) => ({ addresses: [address], conditions: { ready: true } })),
    ports: [{ name: 'https', port, protocol: 'TCP' }],
  })
}

export function kopsController(config: Readonly<Record<string, unknown>>): ApiObject {
  const server = { Listen: ':3988', provider: { aws: { nodesRoles: ['nodes.k8s.example.com'], Region: 'eu-west-1' } } }
  return configMap('kube-system', 'kops-controller', { 'config.yaml': JSON.stringify({ ...config, cloud: 'aws', server }) })
}

export function infrastructure(status: Readonly<Record<string, string>>): ApiObject {
  return asApiObject({
    apiVersion: 'config.openshift.io/v1',
    kind: 'Infrastructure',
    metadata: { name: 'cluster' },
    spec: { cloudConfig: { name: '' }, platformSpec: { type: 'BareMetal' } },
    status: { infrastructureName: 'prod-x7k2p', platform: 'BareMetal', controlPlaneTopology: 'HighlyAvailable', ...status },
  })
}

export function clusterInfo(server: string): ApiObject {
  const config = { apiVersion: 'v1', kind: 'Config', clusters: [{ name: '', cluster: { server } }], contexts: null, users: null }
  return configMap('kube-public', 'cluster-info', { kubeconfig: JSON.stringify(config) })
}

export function service(namespace: string, name: string, clusterIPs: readonly string[]): ApiObject {
  const spec = { type: 'ClusterIP', clusterIP: clusterIPs[0], clusterIPs, ports: [{ name: 'https', port: 443 }] }
  return asApiObject({ apiVersion: 'v1', kind: 'Service', metadata: { namespace, name }, spec })
}

export function pod(name: string, address: string, spec: object = {}): ApiObject {
  const status = { phase: 'Running', podIP: address, podIPs: [{ ip: address }] }
  return asApiObject({ apiVersion: 'v1', kind: 'Pod', metadata: { namespace: 'shop', name }, spec, status })
}

export function dataOf(object: ApiObject): Readonly<Record<string, unknown>> {
  return isObject(object['data']) ? object['data'] : {}
}
