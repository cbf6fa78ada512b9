// SPDX-License-Identifier: Apache-2.0
/** What the API server's objects tell of what is not supported. Layer: test. */
import { expect, test } from 'vitest'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { installationSpec } from '#lib/kube/schema/installation.ts'
import { describe } from '#lib/preflight/findings.ts'
import { computeInstallation } from '#lib/render/computed.ts'
import { ALLOW_PLATFORM, clusterFindings, type ClusterObjects } from '#operator/preflight/cluster-findings.ts'

function computed(spec: object = {}) {
  return computeInstallation(installationSpec.read(spec), { provider: 'Generic', hasKubeProxy: false, installed: 'BPF' })
}

const object = (kind: string, name: string, more: object = {}): ApiObject =>
  asApiObject({ apiVersion: 'v1', kind, metadata: { namespace: 'ns', name }, ...more })
const node = (name: string, labels: object = {}, annotations: object = {}): ApiObject =>
  asApiObject({ apiVersion: 'v1', kind: 'Node', metadata: { name, labels, annotations } })

const NOTHING: ClusterObjects = {
  serverVersion: 'v1.34.1',
  installation: asApiObject({ apiVersion: 'operator.netplane.io/v1', kind: 'Installation', metadata: { name: 'default' } }),
  computed: computed(),
  hasEndpoint: true,
  endpointMap: 'netplane-operator/cluster-services-endpoint',
  proxy: undefined,
  proxyConfig: undefined,
  nodes: [node('a', { 'kubernetes.io/os': 'linux' })],
  services: [object('Service', 'web', { spec: { ports: [{ protocol: 'TCP' }, {}] } })],
  networkPolicies: [object('NetworkPolicy', 'np', { spec: { ingress: [{ ports: [{ protocol: 'UDP' }] }] } })],
  policies: [object('GlobalNetworkPolicy', 'gnp', { spec: { egress: [{ action: 'Allow', protocol: 'TCP' }] } })],
  pools: [object('IPPool', 'pool', { spec: { ipipMode: 'Never' } })],
  newPools: [],
  pods: [object('Pod', 'p', { spec: { containers: [{ name: 'app' }] } })],
  felixConfigurations: [object('FelixConfiguration', 'default', { spec: { floatingIPs: 'Disabled' } })],
  applicationObjects: [],
}

const proxy = (args: readonly string[] = []): ApiObject =>
  object('DaemonSet', 'kube-proxy', { spec: { template: { spec: { containers: [{ command: ['kube-proxy', ...args] }] } } } })
const selecting = (nodeSelector: object): ApiObject =>
  object('DaemonSet', 'kube-proxy', { spec: { template: { spec: { nodeSelector, containers: [] } } } })
const proxyConfig = (mode: string): ApiObject => object('ConfigMap', 'kube-proxy', { data: { 'config.conf': `kind: K\nmode: ${mode}\n` } })

test('a cluster without any of it has no finding', () => {
  expect(clusterFindings(NOTHING)).toEqual([])
})

test.each<readonly [string, Partial<ClusterObjects>, readonly string[]]>([
  ['an old server', { serverVersion: 'v1.30.9' }, ['server-too-old']],
  ['no endpoint, no proxy', { hasEndpoint: false }, ['endpoint-missing']],
  ['no endpoint beside a proxy', { hasEndpoint: false, proxy: proxy() }, ['endpoint-by-service', 'proxy-runs']],
  ['a proxy that stays', { proxy: proxy(), computed: computed({ netplaneNetwork: { linuxDataplane: 'Standard' } }) }, []],
  ['a proxy that we stop', { proxy: proxy(), computed: computed({ netplaneNetwork: { kubeProxyManagement: 'Enabled' } }) }, []],
  ['a proxy', { proxy: proxy(), proxyConfig: proxyConfig('"iptables"') }, ['proxy-runs']],
  ['a proxy that is stopped by our selector', { proxy: selecting({ 'netplane.io/kube-proxy': 'disabled' }) }, []],
  ['a proxy that is stopped by hand', { proxy: selecting({ never: 'true' }), nodes: [node('a')] }, []],
  ['a proxy in IPVS mode by its map', { proxy: proxy(), proxyConfig: proxyConfig('ipvs') }, ['proxy-ipvs', 'proxy-runs']],
  ['a proxy in IPVS mode by its map, quoted', { proxy: proxy(), proxyConfig: proxyConfig('"ipvs"') }, ['proxy-ipvs', 'proxy-runs']],
  [
    'a proxy in IPVS mode by its map in JSON',
    { proxy: proxy(), proxyConfig: object('ConfigMap', 'kube-proxy', { data: { 'config.conf': '{"kind":"K","mode":"ipvs"}' } }) },
    ['proxy-ipvs', 'proxy-runs'],
  ],
  [
    'a proxy in IPVS mode by a map with a key that stands twice',
    { proxy: proxy(), proxyConfig: proxyConfig('ipvs\nkind: K') },
    ['proxy-ipvs', 'proxy-runs'],
  ],
  ['a proxy with IPVS in a comment alone', { proxy: proxy(), proxyConfig: proxyConfig('iptables # mode: ipvs') }, ['proxy-runs']],
  ['a proxy in IPVS mode by a flag', { proxy: proxy(['--proxy-mode=ipvs']) }, ['proxy-ipvs', 'proxy-runs']],
  ['a proxy in IPVS mode by a flag and its value', { proxy: proxy(['--proxy-mode', 'ipvs']) }, ['proxy-ipvs', 'proxy-runs']],
  ['GKE by its version', { serverVersion: 'v1.34.1-gke.100' }, ['platform-refused']],
  ['TKG by its version', { serverVersion: 'v1.34.1+vmware.1' }, ['platform-refused']],
  ['RKE by an annotation', { nodes: [node('a', {}, { 'rke.cattle.io/internal-ip': '10.0.0.1' })] }, ['platform-refused']],
  ['a Windows node', { nodes: [node('w', { 'kubernetes.io/os': 'windows' })] }, ['windows-nodes']],
  ['nodes that are left out', { computed: computed({ nodePods: { nodeSelector: { net: 'yes' } } }) }, ['mixed-nodes']],
  ['an SCTP port', { services: [object('Service', 's', { spec: { ports: [{ protocol: 'SCTP' }] } })] }, ['sctp-services']],
  [
    'SCTP in a policy of Kubernetes',
    { networkPolicies: [object('NetworkPolicy', 'n', { spec: { egress: [{ ports: [{ protocol: 'SCTP' }] }] } })] },
    ['sctp-policies'],
  ],
  ['SCTP in a policy of ours', { policies: [object('NetworkPolicy', 'n', { spec: { ingress: [{ protocol: 132 }] } })] }, ['sctp-policies']],
  ['a rule that logs', { policies: [object('NetworkPolicy', 'n', { spec: { ingress: [{ action: 'Log' }] } })] }, ['log-rules']],
  ['IP in IP', { pools: [object('IPPool', 'p', { spec: { ipipMode: 'Always' } })] }, ['ipip-pools']],
  [
    'floating addresses in settings',
    { felixConfigurations: [object('FelixConfiguration', 'default', { spec: { floatingIPs: 'Enabled' } })] },
    ['floating-ips'],
  ],
  [
    'floating addresses of a pod',
    {
      pods: [
        asApiObject({
          apiVersion: 'v1',
          kind: 'Pod',
          metadata: { name: 'p', annotations: { 'cni.netplane.io/floatingIPs': '["1.1.1.1"]' } },
        }),
      ],
    },
    ['floating-ips'],
  ],
  [
    'policy of the application layer in settings',
    { felixConfigurations: [object('FelixConfiguration', 'default', { spec: { policySyncPathPrefix: '/var/run/nodeagent' } })] },
    ['application-layer'],
  ],
  ['its side-car', { pods: [object('Pod', 'p', { spec: { containers: [{ name: 'dikastes' }] } })] }, ['application-layer']],
  ['logs of requests', { applicationObjects: [object('ApplicationLayer', 'default')] }, ['application-layer']],
])('%s is found', (_, more, codes) => {
  expect(clusterFindings({ ...NOTHING, ...more }).map(({ code }) => code)).toEqual(codes)
})

test('a platform that is refused may be tried where an annotation names it', () => {
  const annotations = { [ALLOW_PLATFORM]: 'gke' }
  const installation = asApiObject({ ...NOTHING.installation, metadata: { name: 'default', annotations } })
  const found = clusterFindings({ ...NOTHING, installation, serverVersion: 'v1.34.1-gke.100' })
  expect(found.map(({ code }) => code)).toEqual(['platform-allowed'])
  const other = clusterFindings({ ...NOTHING, installation, serverVersion: 'v1.34.1+vmware.1' })
  expect(other.map(({ code }) => code)).toEqual(['platform-refused'])
})

test('a finding names ten objects, and then a count', () => {
  const services = Array.from({ length: 12 }, (_, at) => object('Service', `s${at}`, { spec: { ports: [{ protocol: 'SCTP' }] } }))
  const [found] = clusterFindings({ ...NOTHING, services })
  expect(found === undefined ? '' : describe(found)).toMatch(/: ns\/s0, .* and 2 more; take these ports away/)
})
