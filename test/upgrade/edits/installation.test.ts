// SPDX-License-Identifier: Apache-2.0
/** Where fields of older Installations are now. Layer: test. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { installationSpec } from '#lib/kube/schema/installation.ts'
import type { Edits } from '#upgrade/edits/edit.ts'
import { INSTALLATION_RULES } from '#upgrade/edits/installation/rules.ts'
import { readEdits } from '#upgrade/edits/read.ts'
import type { Found } from '#upgrade/found/found.ts'

const FOUND: Found = {
  method: 'operator',
  variant: 'netplane',
  target: 'netplane',
  datastore: 'kubernetes',
  version: '3.27.5',
  namespace: 'netplane-system',
  daemonSet: asApiObject({ apiVersion: 'apps/v1', kind: 'DaemonSet', metadata: { name: 'netplane-node' } }),
  isBpf: false,
  environment: {},
  release: undefined,
}

function read(spec: object, ...more: readonly ApiObject[]): Edits {
  const installation = asApiObject({ apiVersion: 'operator.netplane.io/v1', kind: 'Installation', metadata: { name: 'default' }, spec })
  return readEdits({ serverVersion: undefined, objects: [installation, ...more] }, FOUND, [])
}

const RESOURCES = { requests: { cpu: '500m' } }
const TOLERATIONS = [{ key: 'infra', operator: 'Exists' }]

test.each<[object, object]>([
  [
    { variant: 'Netplane', imagePullSecrets: [{ name: 'ours' }] },
    { variant: 'Netplane', imagePullSecrets: [{ name: 'ours' }] },
  ],
  [{ registry: 'registry.example.com:5000/' }, { registry: 'registry.example.com:5000' }],
  [{ registry: 'registry.example.com/a/b' }, { registry: 'registry.example.com', imagePath: 'a/b' }],
  [{ kubernetesProvider: 'DockerEnterprise' }, { provider: 'MKE' }],
  [{ cni: { type: 'AmazonVPC' } }, { cni: { type: 'Chained' } }],
  [{ cni: { binDir: '/home/bin', confDir: '/home/net.d' } }, { cni: { binDir: '/home/bin', confDir: '/home/net.d' } }],
  [{ netplaneNetwork: { linuxDataplane: 'Iptables', mtu: 1400 } }, { netplaneNetwork: { linuxDataplane: 'Standard', mtu: 1400 } }],
  [{ netplaneNetwork: { linuxDataplane: 'BPF', hostPorts: null } }, { netplaneNetwork: { linuxDataplane: 'BPF' } }],
  [{ netplaneNetwork: { hostPorts: 'Disabled' } }, { netplaneNetwork: { hostPorts: 'Disabled' } }],
  [{ flexVolumePath: 'None' }, { netplaneNetwork: { flexVolumePath: 'None' } }],
  [
    { controlPlaneNodeSelector: { a: 'b' }, controlPlaneTolerations: TOLERATIONS },
    { controllerPods: { nodeSelector: { a: 'b' }, tolerations: TOLERATIONS } },
  ],
  [
    {
      componentResources: [
        { componentName: 'Node', resourceRequirements: RESOURCES },
        { componentName: 'Typha', resourceRequirements: RESOURCES },
        { componentName: 'KubeControllers', resourceRequirements: RESOURCES },
      ],
    },
    { nodePods: { resources: RESOURCES }, controllerPods: { resources: RESOURCES } },
  ],
  [{ nodeUpdateStrategy: { rollingUpdate: { maxUnavailable: '20%' } } }, { nodeUpdateStrategy: { maxUnavailable: '20%' } }],
  [
    {
      netplaneNodeDaemonSet: {
        spec: {
          template: {
            metadata: { annotations: { a: 'b' } },
            spec: { tolerations: TOLERATIONS, containers: [{ name: 'netplane-node', resources: RESOURCES }] },
          },
        },
      },
    },
    { nodePods: { annotations: { a: 'b' }, tolerations: TOLERATIONS, resources: RESOURCES } },
  ],
])('%j is carried as %j', (spec, expected) => {
  const edits = read(spec)
  expect(edits.refusals).toEqual([])
  expect(edits.installation).toEqual(expected)
  expect(new Set(edits.edits.map(({ outcome }) => outcome.kind))).toEqual(new Set(['carried']))
  installationSpec.read(edits.installation)
})

test('what older operators write by themselves is no reason to refuse', () => {
  const spec = {
    variant: 'Netplane',
    cni: { type: 'Netplane', ipam: { type: 'Netplane' } },
    controlPlaneReplicas: 2,
    flexVolumePath: '/usr/libexec/kubernetes/kubelet-plugins/volume/exec/',
    kubeletVolumePluginPath: '/var/lib/kubelet',
    logging: { cni: { logSeverity: 'Info' } },
    nonPrivileged: 'Disabled',
    nodeUpdateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 1 } },
    imagePullSecrets: [],
    netplaneNetwork: {
      bgp: 'Enabled',
      hostPorts: 'Enabled',
      ipPools: [{ cidr: '10.0.0.0/16', encapsulation: 'VXLAN' }],
      linuxDataplane: 'Iptables',
      linuxPolicySetupTimeoutSeconds: 0,
      multiInterfaceMode: 'None',
      nodeAddressAutodetectionV4: { firstFound: true },
      windowsDataplane: 'Disabled',
    },
  }
  expect(read(spec).refusals).toEqual([])
})

test('metrics of nodes are served where they were', () => {
  expect(read({ nodeMetricsPort: 9191 }).felix).toEqual({
    prometheusMetricsEnabled: true,
    prometheusMetricsHost: '0.0.0.0',
    prometheusMetricsPort: 9191,
  })
})

test.each<[object, string]>([
  [{ netplaneNetwork: { ipPools: [{ cidr: '10.0.0.0/16', encapsulation: 'IPIP' }] } }, 'kept'],
  [{ netplaneNetwork: { bgp: 'Disabled' } }, 'left'],
  [{ netplaneNetwork: { multiInterfaceMode: 'None' } }, 'left'],
  [{ netplaneNetwork: { linuxPolicySetupTimeoutSeconds: 5 } }, 'left'],
  [{ typhaAffinity: { nodeAffinity: {} } }, 'left'],
  [{ typhaMetricsPort: 9093 }, 'left'],
  [{ controlPlaneReplicas: 2 }, 'left'],
  [{ kubeletVolumePluginPath: 'None' }, 'left'],
  [{ kubernetesProvider: '' }, 'left'],
  [{ nodeUpdateStrategy: { type: 'RollingUpdate' } }, 'left'],
  [{ netplaneNodeDaemonSet: { spec: { template: { spec: { initContainers: [{ name: 'install-cni', resources: {} }] } } } } }, 'left'],
  [{ componentResources: [{ componentName: 'Typha' }] }, 'left'],
])('%j is %s', (spec, fate) => {
  expect(read(spec).edits.map(({ outcome }) => outcome.kind)).toEqual([fate])
})

test.each<[object, string]>([
  [{ netplaneNetwork: { nodeAddressAutodetectionV4: { interface: 'eth1' } } }, 'spec.netplaneNetwork.nodeAddressAutodetectionV4'],
  [{ netplaneNetwork: { linuxDataplane: 'VPP' } }, 'spec.netplaneNetwork.linuxDataplane'],
  [{ netplaneNetwork: { sysctl: [{ key: 'net.core.somaxconn', value: '5' }] } }, 'spec.netplaneNetwork.sysctl'],
  [{ netplaneNetwork: { containerIPForwarding: 'Enabled' } }, 'spec.netplaneNetwork.containerIPForwarding'],
  [{ netplaneNetwork: { flexVolumePath: 'not absolute' } }, 'spec.netplaneNetwork.flexVolumePath'],
  [{ kubernetesProvider: 'GKE' }, 'spec.kubernetesProvider'],
  [{ cni: { type: 'GKE' } }, 'spec.cni.type'],
  [{ imagePrefix: 'mine-' }, 'spec.imagePrefix'],
  [{ fipsMode: 'Enabled' }, 'spec.fipsMode'],
  [
    { netplaneNodeDaemonSet: { spec: { template: { spec: { affinity: { podAffinity: 1 } } } } } },
    'spec.netplaneNodeDaemonSet.spec.template.spec.affinity.podAffinity',
  ],
  [{ netplaneNodeDaemonSet: { spec: { minReadySeconds: 5 } } }, 'spec.netplaneNodeDaemonSet.spec.minReadySeconds'],
  [{ nodeUpdateStrategy: { type: 'OnDelete' } }, 'spec.nodeUpdateStrategy.type'],
  [{ noSuchField: { inner: 1 } }, 'spec.noSuchField.inner'],
])('%j is refused by name', (spec, field) => {
  expect(read(spec).refusals.map((one) => [one.resource, one.field, one.remedy.length > 5])).toEqual([
    ['Installation default', field, true],
  ])
})

test('addresses by a rule of their own are taken where every Node has the same', () => {
  const node = (internal: string): ApiObject =>
    asApiObject({
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'a', annotations: { 'netplane.io/IPv4Address': '10.0.0.1/24' } },
      status: { addresses: [{ type: 'InternalIP', address: internal }] },
    })
  const refusals = (rule: object, ...nodes: readonly ApiObject[]): number =>
    read({ netplaneNetwork: { nodeAddressAutodetectionV4: rule } }, ...nodes).refusals.length
  expect([refusals({ interface: 'eth1' }), refusals({ interface: 'eth1' }, node('10.0.0.1'))]).toEqual([1, 0])
  expect([refusals({ firstFound: true }), refusals({ firstFound: true }, node('10.0.0.2'))]).toEqual([0, 1])
})

const paths = fc.oneof(
  fc.constantFrom(...INSTALLATION_RULES.flatMap(({ fields }) => fields.map((field) => field.split('.')))),
  fc.array(fc.string(), { minLength: 1, maxLength: 3 }),
)
const values = fc.oneof(
  fc.string(),
  fc.integer(),
  fc.boolean(),
  fc.array(fc.jsonValue()),
  fc.constant({ spec: { template: { spec: [] } } }),
)

test('a field with any name and value has an outcome, and what is carried can be read', () => {
  fc.assert(
    fc.property(paths, values, (path, value) => {
      const edits = read(path.reduceRight<object>((inner, key) => ({ [key]: inner }), value as object))
      expect(edits.edits.length).toBeGreaterThan(0)
      installationSpec.read(edits.installation)
    }),
    { numRuns: 1000 },
  )
})
