// SPDX-License-Identifier: Apache-2.0
/** Manifests of older versions: what each variant has, and since when. Layer: test. */
import { expect, test } from 'vitest'
import { fieldsOf, objectsIn, textOf } from '#lib/base/object.ts'
import { pristineManifest } from '#upgrade/edits/pristine/manifest.ts'
import { OLD_VARIANTS, type OldVariant } from '#upgrade/found/found.ts'
import { EVERY } from './served.ts'

function podOf(version: string, variant: OldVariant, kind = 'DaemonSet'): Readonly<Record<string, unknown>> {
  const object = pristineManifest(version, variant).find((one) => one.kind === kind)
  return fieldsOf(fieldsOf(fieldsOf(object?.['spec'])['template'])['spec'])
}

function namesIn(list: unknown): readonly string[] {
  return objectsIn(list).map(({ name }) => textOf(name))
}

const dataOf = (version: string, variant: OldVariant): Readonly<Record<string, unknown>> =>
  fieldsOf(pristineManifest(version, variant).find(({ kind }) => kind === 'ConfigMap')?.['data'])

const [agent] = objectsIn(podOf('3.27.5', 'netplane')['containers'])

test('each variant has its objects', () => {
  const kinds = OLD_VARIANTS.map((variant) => {
    const objects = pristineManifest('3.27.5', variant).filter(({ kind }) => !kind.startsWith('ClusterRole'))
    return `${variant}: ${objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`).join(', ')}`
  })
  const accounts = 'ServiceAccount netplane-controllers, ServiceAccount netplane-cni-plugin'
  const usual = `${accounts}, ConfigMap netplane-config, DaemonSet netplane-node, Deployment netplane-controllers`
  const budget = 'PodDisruptionBudget netplane-controllers'
  const typha = 'Service netplane-typha, Deployment netplane-typha, PodDisruptionBudget netplane-typha'
  expect(kinds).toEqual([
    `netplane: ServiceAccount netplane-node, ${usual}, ${budget}`,
    `typha: ServiceAccount netplane-node, ${usual}, ${budget}, ${typha}`,
    `vxlan: ServiceAccount netplane-node, ${usual}, ${budget}`,
    `bpf: ServiceAccount netplane-node, ${usual}, ${budget}`,
    `policy-only: ServiceAccount netplane-node, ${usual}, ${budget}, ${typha}`,
    `canal: ServiceAccount canal, ${accounts}, ConfigMap canal-config, DaemonSet canal, Deployment netplane-controllers, ${budget}`,
  ])
})

test.each([
  ['3.15.5', 'netplane', 'upgrade-ipam install-cni flexvol-driver'],
  ['3.22.0', 'netplane', 'upgrade-ipam install-cni flexvol-driver mount-bpffs'],
  ['3.30.0', 'vxlan', 'upgrade-ipam install-cni mount-bpffs'],
  ['3.31.4', 'policy-only', 'install-cni ebpf-bootstrap'],
  ['3.31.4', 'canal', 'install-cni ebpf-bootstrap'],
] as const)('%s %s: before the agent runs %s', (version, variant, expected) => {
  expect(namesIn(podOf(version, variant)['initContainers']).join(' ')).toBe(expected)
})

test('the agent is alone, but for flannel of one variant', () => {
  expect(OLD_VARIANTS.map((variant) => namesIn(podOf('3.27.5', variant)['containers']).join(' '))).toEqual([
    ...Array<string>(5).fill('netplane-node'),
    'netplane-node kube-flannel',
  ])
})

test.each([
  ['3.16.0', 'netplane', { typha_service_name: 'none', netplane_backend: 'bird', veth_mtu: '1440' }],
  ['3.16.0', 'vxlan', { typha_service_name: 'none', netplane_backend: 'vxlan', veth_mtu: '1410' }],
  ['3.17.0', 'vxlan', { typha_service_name: 'none', netplane_backend: 'vxlan', veth_mtu: '0' }],
  ['3.15.0', 'canal', { typha_service_name: 'none', veth_mtu: '1450', canal_iface: '', masquerade: 'true' }],
  ['3.27.0', 'policy-only', { typha_service_name: 'netplane-typha', veth_mtu: '0' }],
] as const)('%s %s: the config map says what it said', (version, variant, expected) => {
  const told = Object.entries(dataOf(version, variant)).filter(([key]) => !['cni_network_config', 'net-conf.json'].includes(key))
  expect(Object.fromEntries(told)).toEqual(expected)
})

test('the list of plugins has bandwidth until 3.29, and placeholders', () => {
  const listOf = (version: string): string => textOf(dataOf(version, 'netplane')['cni_network_config'])
  expect(['3.29.7', '3.30.0'].map((version) => listOf(version).includes('bandwidth'))).toEqual([true, false])
  expect(listOf('3.30.0')).toContain('"mtu": __CNI_MTU__,')
})

const manifest = (version: string, variant: OldVariant = 'netplane'): string => JSON.stringify(pristineManifest(version, variant))

test.each([
  ['3.15.5', '3.16.0', 'cluster-services-endpoint'],
  ['3.16.0', '3.17.0', 'PodDisruptionBudget'],
  ['3.19.0', '3.20.0', '-shutdown'],
  ['3.22.0', '3.23.0', '"policy/v1"'],
  ['3.25.0', '3.26.0', 'netplane-cni-plugin'],
  ['3.28.0', '3.29.0', 'netplane-tier-getter'],
  ['3.29.2', '3.30.0', 'node,loadbalancer'],
  ['3.30.0', '3.31.0', 'RuntimeDefault'],
])('%s does not have, and %s has: %s', (before, since, text) => {
  expect([before, since].map((version) => manifest(version).includes(text))).toEqual([false, true])
})

test('images are those of the version', () => {
  expect(agent?.['image']).toBe('netplane/node:v3.27.5')
})

test.each(EVERY)('%s %s: no object is there twice, and names of lists are unique', (version, variant) => {
  const names = pristineManifest(version, variant).map(({ kind, metadata }) => `${kind} ${metadata.name}`)
  expect(new Set(names).size).toBe(names.length)
  const { containers, volumes } = podOf(version, variant)
  for (const list of [containers, volumes]) expect(new Set(namesIn(list)).size).toBe(namesIn(list).length)
  for (const container of objectsIn(containers)) expect(new Set(namesIn(container['env'])).size).toBe(namesIn(container['env']).length)
})

test.each(EVERY)('%s %s: what containers are mounted is a volume', (version, variant) => {
  const pod = podOf(version, variant)
  const all = [...objectsIn(pod['containers']), ...objectsIn(pod['initContainers'])]
  const mounted = all.flatMap(({ volumeMounts }) => namesIn(volumeMounts))
  expect(mounted.filter((name) => !namesIn(pod['volumes']).includes(name))).toEqual([])
})
