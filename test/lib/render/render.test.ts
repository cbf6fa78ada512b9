// SPDX-License-Identifier: Apache-2.0
/** What an Installation becomes: settings by platform, and the objects of the nodes. Layer: test. */
import { expect, test } from 'vitest'
import { layerFrom, layerFromEnvironment } from '#agent/config/layers.ts'
import { resolveConfig } from '#agent/config/resolve.ts'
import { agentRole, parseOptions } from '#agent/run/options.ts'
import { installationSpec, PROVIDERS } from '#lib/kube/schema/installation.ts'
import { fieldsOf, objectsIn } from '#lib/base/object.ts'
import { STARTUP_TAINT } from '#lib/kube/objects/startup-taint.ts'
import { renderCleanup } from '#lib/render/cleanup-pod.ts'
import { computeInstallation } from '#lib/render/computed.ts'
import { imageOf } from '#lib/render/image.ts'
import { MANIFEST_CONTENTS } from '#lib/render/manifests.ts'
import { OPERATOR_PODS, renderOperator } from '#lib/render/operator-pod.ts'
import { renderPreflight } from '#lib/render/preflight-pod.ts'
import { PLATFORMS } from '#lib/render/providers.ts'
import { renderRemoval } from '#lib/render/removal-job.ts'
import { renderInstallation, renderNode } from '#lib/render/render.ts'
import { renderAsking } from '#operator/switch/outside/asking-pod.ts'

const FACTS = { provider: 'Generic', hasKubeProxy: false, installed: undefined } as const

function computed(spec: unknown, facts: Parameters<typeof computeInstallation>[1] = FACTS): ReturnType<typeof computeInstallation> {
  return computeInstallation(installationSpec.read(spec), facts)
}

test('an empty Installation is all of ours, and BPF where no kube-proxy is', () => {
  expect(computed({})).toMatchObject({ variant: 'Netplane', cni: 'Netplane', linuxDataplane: 'BPF', hostPorts: true, maxUnavailable: 1 })
  expect(computed({}, { ...FACTS, hasKubeProxy: true }).linuxDataplane).toBe('Standard')
  expect(computed({}, { ...FACTS, installed: 'Standard' }).linuxDataplane).toBe('Standard')
})

test.each(PROVIDERS)('%s has its row of platforms, which the Installation overrules', (provider) => {
  const found = computed({}, { ...FACTS, provider })
  expect(found).toMatchObject({
    provider,
    cni: PLATFORMS[provider].cni,
    binDir: PLATFORMS[provider].binDir,
    confDir: PLATFORMS[provider].confDir,
  })
  expect(computed({ provider, cni: { type: 'Chained', binDir: '/b', confDir: '/c' } })).toMatchObject({
    ...{ provider, cni: 'Chained', binDir: '/b', confDir: '/c' },
  })
})

test('platforms differ from the usual one in these', () => {
  const usual: Readonly<Record<string, unknown>> = { ...PLATFORMS.Generic }
  const others = Object.entries(PLATFORMS).map(([name, platform]) => [
    name,
    Object.entries(platform).flatMap(([key, value]) =>
      value === usual[key] ? [] : [`${key}=${JSON.stringify(value).replaceAll('"', '')}`],
    ),
  ])
  expect(Object.fromEntries(others)).toEqual({
    Generic: [],
    KOPS: ['proxy=command', 'nameserver=169.254.169.253'],
    OpenShift: [
      'binDir=/var/lib/cni/bin',
      'confDir=/var/run/multus/cni/net.d',
      'healthPort=9199',
      'needsScc=true',
      'proxy=platform-operator',
      'kubeProxy={namespace:openshift-kube-proxy,daemonSet:openshift-kube-proxy,configMap:proxy-config}',
    ],
    AKS: ['proxy=keep'],
    EKS: ['kubeProxy={namespace:kube-system,daemonSet:kube-proxy,configMap:kube-proxy-config}', 'nameserver=169.254.169.253'],
    MKE: ['vxlanPort=8472', 'vxlanVni=10000', 'proxy=command', 'hidesKubeProxy=true'],
    RKE2: ['proxy=command'],
  })
})

test.each([
  [{}, 'netplane:3.31.5'],
  [{ registry: 'registry.example.com:5000/', imagePath: '/net/' }, 'registry.example.com:5000/net/netplane:3.31.5'],
  [{ variant: 'NetplaneEnterprise', imagePath: 'net' }, 'net/netplane-enterprise:3.31.5'],
])('the image of %j is %s', (spec, image) => {
  expect(imageOf(computed(spec), '3.31.5')).toBe(image)
})

test('overrides of pods come to those that the daemon set has itself', () => {
  const nodePods = {
    tolerations: [{ key: 'x', operator: 'Exists' }],
    nodeSelector: { role: 'net' },
    annotations: { a: 'b' },
    resources: { requests: { cpu: '1' } },
  }
  const input = {
    namespace: 'netplane-system',
    image: 'i',
    computed: computed({ nodePods, imagePullSecrets: [{ name: 's' }] }),
    endpoint: undefined,
  }
  const daemonSet = renderNode(input).find(({ kind }) => kind === 'DaemonSet')
  expect(daemonSet).toMatchObject({
    spec: {
      template: {
        metadata: { annotations: { a: 'b' } },
        spec: {
          imagePullSecrets: [{ name: 's' }],
          nodeSelector: { 'kubernetes.io/os': 'linux', role: 'net' },
          tolerations: [{ operator: 'Exists' }, { key: 'x', operator: 'Exists' }],
          containers: [{ name: 'netplane-node', resources: { requests: { cpu: '1' } } }, { name: 'datastore' }],
        },
      },
    },
  })
})

test.each([
  [{}, []],
  [{ netplaneNetwork: { mtu: 1400, hostPorts: 'Disabled' } }, ['--cni-mtu=1400', '--cni-no-host-ports']],
  [{ netplaneNetwork: { hostPorts: 'Enabled' } }, []],
  [{ cni: { type: 'Local' }, netplaneNetwork: { mtu: 1400 } }, ['--cni-local', '--cni-mtu=1400']],
  [{ cni: { type: 'Chained' } }, ['--cni-chained']],
  [{ cni: { type: 'None' } }, ['--cni-none']],
])('the agents of %j have the flags %j, and know them', (spec, flags) => {
  const objects = renderNode({ namespace: 'netplane-system', image: 'i', computed: computed(spec), endpoint: undefined })
  const [, text = '[]'] = /"args":(\["--node[^\]]*\])/.exec(JSON.stringify(objects)) ?? []
  const args = JSON.parse(text) as readonly string[]
  expect(args.filter((arg) => /^--cni-(?!conf|bin)/.test(arg))).toEqual(flags)
  expect(parseOptions(args.map((arg) => arg.replace('$(NAMESPACE)', 'ns')))).toMatchObject({ kind: 'run' })
})

test('policy alone makes no way, has no folder of plugins, and is in Standard mode whatever FelixConfiguration says', () => {
  const { cni, linuxDataplane, settings } = MANIFEST_CONTENTS['netplane-policy-only']
  const input = { namespace: 'kube-system', image: 'i', endpoint: undefined, settings }
  const objects = renderNode({ ...input, computed: computed({ cni: { type: cni }, netplaneNetwork: { linuxDataplane } }) })
  const text = JSON.stringify(objects.find(({ kind }) => kind === 'DaemonSet'))
  expect(text).not.toContain('/cni/')
  const command = parseOptions(['--cni-none', '--resources=d'])
  expect(command.kind === 'run' && agentRole(command.options)).toEqual({ makesRoutes: false, servesPods: false })
  const variables: Record<string, string> = {}
  for (const [, name = '', value = ''] of text.matchAll(/"name":"(FELIX_\w+)","value":"([^"]*)"/g)) variables[name] = value
  const object = layerFrom({ kind: 'FelixConfiguration', namespace: '', name: 'default', spec: { bpfEnabled: true } })
  const { config } = resolveConfig([layerFromEnvironment(variables), object], undefined)
  expect(config.compile.services.mode).toBe('Standard')
})

test('an endpoint that was proven is in the pods themselves, any other is read from the config map', () => {
  const rendered = (endpoint: { host: string; port: string } | undefined): string =>
    JSON.stringify(renderNode({ namespace: 'netplane-system', image: 'i', computed: computed({}), endpoint }))
  expect(rendered({ host: 'api', port: '6443' })).toContain('{"name":"CLUSTER_SERVICE_HOST","value":"api"}')
  expect(rendered(undefined)).toContain(
    '"configMapKeyRef":{"name":"cluster-services-endpoint","key":"CLUSTER_SERVICE_HOST","optional":true}',
  )
})

test('what the agent writes is what the probe of the other container looks for, in a folder of their pod', () => {
  const objects = renderNode({ namespace: 'netplane-system', image: 'i', computed: computed({}), endpoint: undefined })
  const text = JSON.stringify(objects.find(({ kind }) => kind === 'DaemonSet'))
  const [, file = '', mount = ''] = /"--datastore-file=((\/[^"]+)\/[^"/]+)"/.exec(text) ?? []
  expect(text).toContain(`"exec":{"command":["netplane-datastore","${file}"]}`)
  expect(text.split(`{"name":"datastore","mountPath":"${mount}"`)).toHaveLength(3)
  expect(text).toContain('{"name":"datastore","emptyDir":')
})

test('agents in a DaemonSet of another name know it, and so do controllers, with the rights to read it', () => {
  const input = { namespace: 'kube-system', image: 'netplane:3', computed: computed({}), endpoint: undefined, daemonSet: 'canal' } as const
  const text = JSON.stringify(renderInstallation(input))
  expect(text).toContain('"kind":"DaemonSet","metadata":{"name":"canal"')
  expect(text).toContain('--daemon-set=$(NAMESPACE)/canal')
  expect(text).toContain('--daemon-set=canal')
  expect(text.match(/"resources":\["daemonsets"\],"resourceNames":\["canal"\]/g)).toHaveLength(2)
  expect(text).not.toMatch(/"resources":\["daemonsets"\],"resourceNames":\["netplane-node"\]/)
})

test('every pod of ours tolerates the taint by which pods wait for the agent', () => {
  const input = { namespace: 'n', image: 'i', computed: computed({}), endpoint: undefined }
  const operator = { namespace: 'n', image: 'i', pods: OPERATOR_PODS }
  const preflight = { serviceAddresses: [], peers: [], vxlanPort: undefined, run: 'r' }
  const outside = { from: 'n1', places: [], patienceMs: 1, run: 'r' }
  const objects = [
    ...[...renderInstallation(input), ...renderOperator(operator), ...renderRemoval({ ...operator, timeout: '1' })],
    ...[...renderCleanup(input), ...renderPreflight({ ...input, ...preflight }), renderAsking({ ...input, ...outside })],
  ]
  const pods = objects.flatMap(({ metadata, spec }) => {
    const template = fieldsOf(fieldsOf(spec)['template'])['spec']
    return template === undefined ? [] : [[metadata.name, objectsIn(fieldsOf(template)['tolerations'])] as const]
  })
  const isTolerant = ({ key, operator: how, effect }: Readonly<Record<string, unknown>>): boolean =>
    (key === undefined || key === STARTUP_TAINT) && how === 'Exists' && effect === undefined
  expect(pods).toHaveLength(7)
  expect(pods.filter(([, tolerations]) => !tolerations.some(isTolerant))).toEqual([])
})

test('what an agent may patch of all nodes, admission keeps to its own node', () => {
  const objects = renderNode({ namespace: 'n', image: 'i', computed: computed({}), endpoint: undefined })
  const rules = objects.filter(({ kind }) => kind === 'ClusterRole').flatMap((role) => objectsIn(role['rules']))
  const ofNodes = rules.filter(({ verbs }) => JSON.stringify(verbs) === '["patch"]').flatMap(({ resources }) => resources)
  const kept = objects
    .filter(({ kind }) => kind === 'ValidatingAdmissionPolicy')
    .flatMap(({ spec }) => objectsIn(fieldsOf(fieldsOf(spec)['matchConstraints'])['resourceRules']).flatMap(({ resources }) => resources))
  expect(ofNodes).toContain('nodes')
  expect(kept).toEqual(expect.arrayContaining(ofNodes))
  const bound = objects.filter(({ kind }) => kind === 'ValidatingAdmissionPolicyBinding').map(({ spec }) => fieldsOf(spec)['policyName'])
  expect(bound).toContain('netplane-node-nodes')
})
