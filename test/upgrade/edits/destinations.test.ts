// SPDX-License-Identifier: Apache-2.0
/** What becomes of edits that administrators make. Layer: test. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { controllersConfigurationSpec } from '#lib/kube/schema/controllers-configuration.ts'
import { installationSpec } from '#lib/kube/schema/installation.ts'
import { computeInstallation } from '#lib/render/computed.ts'
import { renderInstallation } from '#lib/render/render.ts'
import type { Edits } from '#upgrade/edits/edit.ts'
import { pristineManifest } from '#upgrade/edits/pristine/manifest.ts'
import { manifestEdits } from '#upgrade/edits/read.ts'
import type { Surroundings } from '#upgrade/edits/rule.ts'
import { LEAST_MEMORY } from '#upgrade/edits/rules/pods.ts'
import { editText } from '#upgrade/edits/text.ts'
import type { OldVariant, Target } from '#upgrade/found/found.ts'
import { readStored } from '#upgrade/stored/read.ts'
import { installation, ofAgents, ofPods, variable, type Change } from './served.ts'

const computed = computeInstallation(installationSpec.read({}), { provider: 'Generic', hasKubeProxy: true, installed: undefined })
const rendered = renderInstallation({ namespace: 'kube-system', image: 'netplane:3.31.5', computed, endpoint: undefined })

const TARGETS: Partial<Record<OldVariant, Target>> = { canal: 'netplane-local', 'policy-only': 'netplane-policy-only' }

function read(changes: readonly Change[], variant: OldVariant = 'netplane', around: Partial<Surroundings> = {}): Edits {
  const compared = { base: pristineManifest('3.27.5', variant), live: installation('3.27.5', variant, changes), rendered }
  return manifestEdits(compared, { target: TARGETS[variant] ?? 'netplane', nodes: [], endpoint: undefined, ...around })
}

/** How each fared, in order. */
function fates(edits: Edits): readonly string[] {
  return edits.edits.map(({ outcome }) => outcome.kind)
}

const DAEMON_SET = 'DaemonSet netplane-node'
const CONTROLLERS = 'Deployment netplane-controllers'
const CONFIG_MAP = 'ConfigMap netplane-config'

function change(resource: string, steps: readonly string[], value: unknown): Change {
  return { resource, steps, value, manager: 'kubectl-edit' }
}

function data(key: string, value: string): Change {
  return change(CONFIG_MAP, ['data', key], value)
}

/** The list of plugins, otherwise than it was. */
function plugins(edit: (list: { plugins: Record<string, unknown>[] }) => void): Change {
  const map = pristineManifest('3.27.5', 'netplane').find(({ kind }) => kind === 'ConfigMap')
  const text = (map?.['data'] as Record<string, string>)['cni_network_config'] ?? ''
  const list = JSON.parse(text.replace(': __CNI_MTU__', ': "__CNI_MTU__"')) as { plugins: Record<string, unknown>[] }
  edit(list)
  return data('cni_network_config', JSON.stringify(list))
}

function node(name: string, found: string, internal: string): ApiObject {
  return asApiObject({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, annotations: { 'netplane.io/IPv4Address': found } },
    status: { addresses: [{ type: 'InternalIP', address: internal }] },
  })
}

const RESOURCES = { requests: { cpu: '500m' }, limits: { memory: '1Gi' } }
const INFRA = { key: 'infra', operator: 'Exists', effect: 'NoSchedule' }
const controllersVariable = (name: string, value: string): Change =>
  change(CONTROLLERS, ofPods('containers', '[netplane-controllers]', 'env', `[${name}]`), { name, value })

test('what an upgrade that was cut off has applied before it rolls is no edit', () => {
  const base = pristineManifest('3.27.5', 'netplane')
  const isApplied = ({ kind }: ApiObject): boolean => /^(ServiceAccount|ClusterRole|ClusterRoleBinding)$/.test(kind)
  const known = new Map(rendered.filter(isApplied).map((object) => [`${object.kind} ${object.metadata.name}`, object]))
  const live = installation('3.27.5', 'netplane', []).map((object) => known.get(`${object.kind} ${object.metadata.name}`) ?? object)
  expect(live.filter((object) => rendered.includes(object)).length).toBeGreaterThan(2)
  expect(manifestEdits({ base, live, rendered }, { target: 'netplane', nodes: [], endpoint: undefined }).edits).toEqual([])
})

test.each<[string, readonly Change[], Partial<Pick<Edits, 'installation' | 'felix' | 'controllers'>>]>([
  ['a FELIX_ variable', [variable('FELIX_LOGSEVERITYSCREEN', 'debug')], { felix: { logSeverityScreen: 'Debug' } }],
  ['another value of one', [variable('FELIX_DEFAULTENDPOINTTOHOSTACTION', 'RETURN')], { felix: { defaultEndpointToHostAction: 'Return' } }],
  [
    'a variable that has another name now',
    [variable('FELIX_BPFKUBEPROXYIPTABLESCLEANUPENABLED', 'false')],
    { felix: { bpfProxyIptablesCleanupEnabled: false } },
  ],
  [
    'metrics of agents',
    [variable('FELIX_PROMETHEUSMETRICSENABLED', 'true'), variable('FELIX_PROMETHEUSMETRICSPORT', '9191')],
    { felix: { prometheusMetricsEnabled: true, prometheusMetricsPort: 9191 } },
  ],
  [
    'two variables of one group',
    [variable('FELIX_BPFCONNTRACKTIMEOUTS_UDPTIMEOUT', '90'), variable('FELIX_BPFCONNTRACKTIMEOUTS_TCPESTABLISHED', '2h')],
    { felix: { bpfConntrackTimeouts: { udpTimeout: '90s', tcpEstablished: '2h' } } },
  ],
  ['the MTU', [data('veth_mtu', '1400')], { installation: { netplaneNetwork: { mtu: 1400 } } }],
  ['resources of agents', [change(DAEMON_SET, ofAgents('resources'), RESOURCES)], { installation: { nodePods: { resources: RESOURCES } } }],
  [
    'annotations of agents',
    [change(DAEMON_SET, ['spec', 'template', 'metadata', 'annotations'], { 'prometheus.io/scrape': 'true' })],
    { installation: { nodePods: { annotations: { 'prometheus.io/scrape': 'true' } } } },
  ],
  [
    'labels of their nodes',
    [change(DAEMON_SET, ofPods('nodeSelector', 'example.com/pool'), 'a')],
    { installation: { nodePods: { nodeSelector: { 'example.com/pool': 'a' } } } },
  ],
  [
    'a toleration',
    [change(DAEMON_SET, ofPods('tolerations', '[infra:NoSchedule]'), INFRA)],
    { installation: { nodePods: { tolerations: [INFRA] } } },
  ],
  [
    'a secret to pull images with, of pods and of an account',
    [
      change(DAEMON_SET, ofPods('imagePullSecrets'), [{ name: 'ours' }]),
      change('ServiceAccount netplane-node', ['imagePullSecrets'], [{ name: 'ours' }, { name: 'theirs' }]),
    ],
    { installation: { imagePullSecrets: [{ name: 'ours' }, { name: 'theirs' }] } },
  ],
  [
    'a registry',
    [
      change(DAEMON_SET, ofAgents('image'), 'registry:5000/mirror/netplane/node:v3.27.5'),
      change(
        CONTROLLERS,
        ofPods('containers', '[netplane-controllers]', 'image'),
        'registry:5000/mirror/netplane/kube-controllers:v3.27.5',
      ),
    ],
    { installation: { registry: 'registry:5000', imagePath: 'mirror' } },
  ],
  [
    'how many nodes change at a time',
    [change(DAEMON_SET, ['spec', 'updateStrategy', 'rollingUpdate', 'maxUnavailable'], '10%')],
    { installation: { nodeUpdateStrategy: { maxUnavailable: '10%' } } },
  ],
  [
    'folders of plugins',
    [
      change(DAEMON_SET, ofPods('volumes', '[cni-bin-dir]', 'hostPath', 'path'), '/home/kubernetes/bin'),
      change(DAEMON_SET, ofPods('volumes', '[cni-net-dir]', 'hostPath', 'path'), '/etc/kubernetes/cni/net.d'),
    ],
    { installation: { cni: { binDir: '/home/kubernetes/bin', confDir: '/etc/kubernetes/cni/net.d' } } },
  ],
  [
    'a list without portmap',
    [plugins((list) => void (list.plugins = list.plugins.filter(({ type }) => type !== 'portmap')))],
    { installation: { netplaneNetwork: { hostPorts: 'Disabled' } } },
  ],
  [
    'automatic host endpoints',
    [controllersVariable('AUTO_HOST_ENDPOINTS', 'enabled')],
    { controllers: { controllers: { node: { hostEndpoint: { autoCreate: 'Enabled' } } } } },
  ],
  ['the log of controllers', [controllersVariable('LOG_LEVEL', 'DEBUG')], { controllers: { logSeverityScreen: 'Debug' } }],
  [
    'pods of controllers',
    [
      change(CONTROLLERS, ofPods('tolerations', '[infra:NoSchedule]'), INFRA),
      change(CONTROLLERS, ofPods('nodeSelector', 'example.com/infra'), 'true'),
      change(CONTROLLERS, ofPods('containers', '[netplane-controllers]', 'resources'), { limits: { memory: '256Mi' } }),
    ],
    {
      installation: {
        controllerPods: {
          tolerations: [INFRA],
          nodeSelector: { 'example.com/infra': 'true' },
          resources: { limits: { memory: '256Mi' } },
        },
      },
    },
  ],
])('carried: %s', (_what, changes, expected) => {
  const edits = read(changes)
  expect(new Set(fates(edits))).toEqual(new Set(['carried']))
  const { installation: spec, felix, controllers } = edits
  expect({ installation: spec, felix, controllers }).toEqual({ installation: {}, felix: {}, controllers: {}, ...expected })
  installationSpec.read(spec)
  controllersConfigurationSpec.read(controllers)
})

test('FelixConfiguration says what the stored objects with the environment say', () => {
  const environment = { FELIX_LOGSEVERITYSCREEN: 'debug', FELIX_BPFENABLED: 'true', FELIX_BPFCONNTRACKTIMEOUTS_UDPTIMEOUT: '90' }
  const { felix } = read(Object.entries(environment).map(([name, value]) => variable(name, value)))
  const made = readStored({ objects: [], environment }).outcomes.find((one) => 'object' in one && one.object.kind === 'FelixConfiguration')
  expect(made !== undefined && 'object' in made ? made.object.spec : {}).toMatchObject(felix)
})

test.each<[string, Change]>([
  ['the range of the first pool', variable('NETPLANE_IPV4POOL_CIDR', '10.0.0.0/16')],
  ['the tunnel of the first pool', variable('NETPLANE_IPV4POOL_VXLAN', 'CrossSubnet')],
  ['a label of the object', change(DAEMON_SET, ['metadata', 'labels', 'argocd.argoproj.io/instance'], 'net')],
])('kept: %s', (_what, edit) => {
  expect(fates(read([edit]))).toEqual(['kept'])
})

test.each<[string, Change, OldVariant?]>([
  ["settings of flannel's network", change('ConfigMap canal-config', ['data', 'net-conf.json'], '{}'), 'canal'],
  ["flannel's container", change('DaemonSet canal', ofPods('containers', '[kube-flannel]', 'command'), ['/opt/bin/flanneld']), 'canal'],
])('kept: %s', (_what, edit, variant) => {
  expect(fates(read([edit], variant))).toEqual(['kept'])
})

test('the API server is found by the config map, where that says the same', () => {
  const edit = data('kubernetes_service_host', '10.0.0.9')
  const map = (host: string): ApiObject =>
    asApiObject({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'cluster-services-endpoint' },
      data: { CLUSTER_SERVICE_HOST: host },
    })
  const fateWith = (host: string): unknown => fates(read([edit], 'bpf', { endpoint: map(host) }))
  expect([fateWith('10.0.0.9'), fateWith('10.0.0.8'), fates(read([edit], 'bpf'))]).toEqual([['kept'], ['refused'], ['refused']])
})

test.each<[string, Change, OldVariant?]>([
  ['a field that is not obeyed', variable('FELIX_IPTABLESBACKEND', 'NFT')],
  ['a variable that is taken away', variable('FELIX_HEALTHENABLED', undefined)],
  ['a field that there is not', variable('FELIX_NOSUCHFIELD', '1')],
  ['the number of typhas', change('Deployment netplane-typha', ['spec', 'replicas'], 3), 'typha'],
  [
    'metrics of typha',
    change('Deployment netplane-typha', ofPods('containers', '[netplane-typha]', 'env', '[TYPHA_PROMETHEUSMETRICSENABLED]'), {
      name: 'TYPHA_PROMETHEUSMETRICSENABLED',
      value: 'true',
    }),
    'typha',
  ],
  ['the MTU that nodes find', data('veth_mtu', '1440'), 'canal'],
  ['the backend for VXLAN', data('netplane_backend', 'vxlan')],
  ['a probe', change(DAEMON_SET, ofAgents('livenessProbe', 'failureThreshold'), 9)],
  ['the log of the plugin', plugins((list) => void Object.assign(list.plugins[0] ?? {}, { log_level: 'debug' }))],
  [
    'addresses of IPv6',
    plugins((list) => void Object.assign(list.plugins[0] ?? {}, { ipam: { type: 'netplane-ipam', assign_ipv6: 'true' } })),
  ],
  ['no plugin for bandwidth', plugins((list) => void list.plugins.pop())],
  ['controllers for another store', controllersVariable('ENABLED_CONTROLLERS', 'node,policy')],
  ['a second one of the controllers', change(CONTROLLERS, ['spec', 'replicas'], 2)],
  ['rights of the account', change('ClusterRole netplane-node', ['rules'], [])],
  ['both families', variable('IP6', 'autodetect')],
  ['a container before the agent', change(DAEMON_SET, ofPods('initContainers', '[upgrade-ipam]'), undefined)],
])('left: %s', (_what, edit, variant) => {
  const mapped = variant === 'canal' ? { ...edit, resource: 'ConfigMap canal-config' } : edit
  expect(fates(read([mapped], variant))).toEqual(['left'])
})

const SIDECAR = { name: 'shipper', image: 'example.com/shipper:1' }

test.each<[string, Change, OldVariant?]>([
  ['a field that traffic depends on', variable('FELIX_WIREGUARDENABLED', 'true')],
  ['a value that cannot be used', variable('FELIX_BPFENABLED', 'perhaps')],
  ['a variable from elsewhere', variable('FELIX_LOGSEVERITYSCREEN', { configMapKeyRef: { name: 'other', key: 'log' } })],
  ['a variable that no rule knows', variable('HTTP_PROXY', 'http://proxy:3128')],
  ['another way to find addresses', variable('IP_AUTODETECTION_METHOD', 'interface=eth1')],
  ['BGP', variable('AS', '64512')],
  ['another store', variable('ETCD_ENDPOINTS', 'https://10.0.0.1:2379')],
  ['an MTU that is none', data('veth_mtu', '90000')],
  ['no backend', data('netplane_backend', 'none')],
  ['a key of its own', data('mine', 'x')],
  ['another network name', plugins((list) => void Object.assign(list, { name: 'mine' }))],
  ['sysctls by a plugin', plugins((list) => void list.plugins.push({ type: 'tuning', sysctl: { 'net.core.somaxconn': '500' } }))],
  [
    'pools by the list',
    plugins((list) => void Object.assign(list.plugins[0] ?? {}, { ipam: { type: 'netplane-ipam', ipv4_pools: ['fast'] } })),
  ],
  [
    'no addresses of IPv4',
    plugins((list) => void Object.assign(list.plugins[0] ?? {}, { ipam: { type: 'netplane-ipam', assign_ipv4: 'false' } })),
  ],
  [
    'forwarding in pods',
    plugins((list) => void Object.assign(list.plugins[0] ?? {}, { container_settings: { allow_ip_forwarding: true } })),
  ],
  ['features', plugins((list) => void Object.assign(list.plugins[0] ?? {}, { feature_control: { floating_ips: true } }))],
  ['a list that cannot be read', data('cni_network_config', '{')],
  ['affinity', change(DAEMON_SET, ofPods('affinity'), { podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [1] } })],
  ['another priority', change(DAEMON_SET, ofPods('priorityClassName'), 'mine')],
  ['a toleration taken away', change(DAEMON_SET, ofPods('tolerations', '[:NoExecute]'), undefined)],
  ['too small a limit', change(DAEMON_SET, ofAgents('resources', 'limits'), { memory: '128Mi' })],
  ['a container of others', change(DAEMON_SET, ofPods('containers', '[shipper]'), SIDECAR)],
  ['a volume of others', change(DAEMON_SET, ofPods('volumes', '[certs]'), { name: 'certs', secret: { secretName: 'certs' } })],
  ['another folder of the agent', change(DAEMON_SET, ofPods('volumes', '[var-lib-netplane]', 'hostPath', 'path'), '/data/netplane')],
  ['an image of its own', change(DAEMON_SET, ofAgents('image'), 'example.com/special:1')],
  ['no rolling update', change(DAEMON_SET, ['spec', 'updateStrategy'], { type: 'OnDelete' })],
  ['labels of pods', change(DAEMON_SET, ['spec', 'template', 'metadata', 'labels', 'team'], 'net')],
  ['a controller that there is not', controllersVariable('ENABLED_CONTROLLERS', 'node,other')],
  ['no controller of nodes', controllersVariable('ENABLED_CONTROLLERS', 'loadbalancer')],
  [
    'another account with our rights',
    change(
      'ClusterRoleBinding netplane-node',
      ['subjects'],
      [
        { kind: 'ServiceAccount', name: 'netplane-node', namespace: 'kube-system' },
        { kind: 'User', name: 'eve' },
      ],
    ),
  ],
  ['an addon manager', change(DAEMON_SET, ['metadata', 'labels', 'addonmanager.kubernetes.io/mode'], 'Reconcile')],
] as const)('refused by name: %s', (_what, edit, variant) => {
  const edits = read([edit], variant)
  expect(fates(edits)).toEqual(['refused'])
  const [refusal] = edits.refusals
  const [found] = edits.edits
  expect(refusal).toMatchObject({ resource: found?.resource, field: found?.field, value: found?.mine })
  expect([refusal?.reason, refusal?.remedy].map((text) => (text?.length ?? 0) > 10)).toEqual([true, true])
})

test('an address that older agents looked for is refused by the nodes where another one is meant', () => {
  const edit = variable('IP_AUTODETECTION_METHOD', 'interface=eth1')
  const [same, other] = [node('a', '10.0.0.1/24', '10.0.0.1'), node('b', '10.1.0.2/24', '10.0.0.2')]
  expect(fates(read([edit], 'netplane', { nodes: [same] }))).toEqual(['left'])
  expect(read([edit], 'netplane', { nodes: [same, other] }).refusals.map(({ reason }) => reason)).toEqual([
    'agents take the InternalIP of their Node, and look for no other address, which is another one, or not known, on b',
  ])
})

test('two images of different registries are not both carried', () => {
  const edits = read([
    change(DAEMON_SET, ofAgents('image'), 'one.example.com/netplane/node:v3.27.5'),
    change(CONTROLLERS, ofPods('containers', '[netplane-controllers]', 'image'), 'two.example.com/netplane/kube-controllers:v3.27.5'),
  ])
  expect([fates(edits), edits.installation, edits.refusals[0]?.reason]).toEqual([
    ['carried', 'refused'],
    { registry: 'one.example.com' },
    'another edit says spec.registry otherwise',
  ])
})

describe('what an apply does with the field', () => {
  const cases: readonly (readonly [string, Change, string])[] = [
    ['of kubectl apply goes', { ...variable('FELIX_LOGSEVERITYSCREEN', 'Debug'), manager: 'kubectl-client-side-apply' }, 'goes'],
    ['of kubectl set env stays', variable('FELIX_LOGSEVERITYSCREEN', 'Debug'), 'stays'],
    ['that this version says is overwritten', change(DAEMON_SET, ofPods('priorityClassName'), 'mine'), 'overwritten'],
    ['of an object that this version has not goes', data('veth_mtu', '1400'), 'goes'],
  ]
  test.each(cases)('a field %s', (_what, edit, applied) => {
    expect(read([edit]).edits.map((one) => one.applied)).toEqual([applied])
  })

  test('the text names where the field stays', () => {
    const [edit] = read([variable('FELIX_LOGSEVERITYSCREEN', 'Debug')]).edits
    expect(edit && editText(edit)).toBe(
      'DaemonSet kube-system/netplane-node: spec.template.spec.containers[netplane-node].env[FELIX_LOGSEVERITYSCREEN]: – → "Debug" (kubectl-set): ' +
        'carried to FelixConfiguration default: spec.logSeverityScreen: "Debug". ' +
        'An apply leaves it, as kubectl-set alone has it.',
    )
  })
})

test('limits are compared with what pods of this version ask for', () => {
  const asked = rendered.flatMap(({ kind, spec }) =>
    kind === 'DaemonSet' || kind === 'Deployment' ? [JSON.stringify(spec).match(/"requests":\{"cpu":"\d+m","memory":"(\w+)"/)?.[1]] : [],
  )
  expect(asked).toEqual([LEAST_MEMORY.nodePods, LEAST_MEMORY.controllerPods])
})

const PLACES = [
  [DAEMON_SET, ofAgents()],
  [DAEMON_SET, ofPods()],
  [DAEMON_SET, ['spec']],
  [DAEMON_SET, ['metadata', 'annotations']],
  [CONTROLLERS, ofPods()],
  [CONTROLLERS, ofPods('containers', '[netplane-controllers]')],
  [CONFIG_MAP, ['data']],
  ['ClusterRole netplane-node', []],
  ['ServiceAccount netplane-node', []],
  ['PodDisruptionBudget netplane-controllers', ['spec']],
] as const

test('a field with any name and value, anywhere, has one outcome that is not silent', () => {
  const field = fc.record({
    place: fc.constantFrom(...PLACES),
    name: fc.stringMatching(/^[a-zA-Z][a-zA-Z0-9]{0,12}$/),
    value: fc.oneof(
      fc.string({ minLength: 1 }),
      fc.integer({ min: 2 }),
      fc.dictionary(fc.stringMatching(/^[a-z]{1,5}$/), fc.string(), { minKeys: 1 }),
    ),
  })
  fc.assert(
    fc.property(field, ({ place: [resource, steps], name, value }) => {
      const { edits, refusals } = read([change(resource, [...steps, name], value)])
      const isServers = ['status', 'secrets'].includes(name)
      expect(edits.length > 0).toBe(!isServers)
      for (const { outcome } of edits) {
        if (outcome.kind === 'refused') expect(refusals.length).toBeGreaterThan(0)
        else expect(['carried', 'kept', 'left']).toContain(outcome.kind)
      }
    }),
    { numRuns: 60 },
  )
})
