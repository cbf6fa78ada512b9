// SPDX-License-Identifier: Apache-2.0
/** What each platform gets of an Installation that says nothing but its data plane, row by row. Layer: test. */
import { expect, test } from 'vitest'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { fieldsOf } from '#lib/base/object.ts'
import { PROVIDERS } from '#lib/kube/schema/installation.ts'
import { renderCleanup } from '#lib/render/cleanup-pod.ts'
import { FELIX_CONFIGURATION, missingSettings, tunnelPort } from '#lib/render/felix-settings.ts'
import { ENDPOINT_PROOF, renderPreflight } from '#lib/render/preflight-pod.ts'
import { renderNode } from '#lib/render/render.ts'
import type { Provider } from '#lib/render/providers.ts'
import { readInstallation } from '#operator/run/desired.ts'

const NAMESPACE = 'netplane-system'

function computedOf(provider: Provider) {
  const spec = { netplaneNetwork: { linuxDataplane: 'BPF' } }
  const installation = asApiObject({ apiVersion: 'operator.netplane.io/v1', kind: 'Installation', metadata: { name: 'default' }, spec })
  return readInstallation(installation, { provider, hasKubeProxy: true, installed: undefined }).computed
}

/** All that the operator ever makes. */
function renderedOf(provider: Provider): readonly ApiObject[] {
  const computed = computedOf(provider)
  const common = { namespace: NAMESPACE, image: 'i', computed, endpoint: { host: 'api', port: '6443' } }
  const asked = { ...common, serviceAddresses: [], peers: [], vxlanPort: tunnelPort(computed.platform, undefined), run: '' }
  const proof = renderPreflight({ ...asked, groups: ['endpoint'], name: ENDPOINT_PROOF })
  return [...renderPreflight(asked), ...proof, ...renderNode(common), ...renderCleanup(common)]
}

function felix(spec: object): ApiObject {
  const { apiVersion, kind, name } = FELIX_CONFIGURATION
  return asApiObject({ apiVersion, kind, metadata: { name, resourceVersion: '7' }, spec })
}

/** What differs between platforms in what is rendered. */
function rowOf(provider: Provider) {
  const objects = renderedOf(provider)
  const text = JSON.stringify(objects)
  const [, conf] = /"name":"cni-conf","hostPath":\{"path":"([^"]+)"/.exec(text) ?? []
  const [, bin] = /"name":"cni-bin","hostPath":\{"path":"([^"]+)"/.exec(text) ?? []
  const [, health] = /"FELIX_HEALTHPORT","value":"(\d+)"/.exec(text) ?? []
  const [, probed = 'default'] = /"--vxlan-port=(\d+)"/.exec(text) ?? []
  const constraints = objects.flatMap(({ kind, metadata }) => (kind === 'SecurityContextConstraints' ? [metadata.name] : []))
  return { conf, bin, health, probed, settings: missingSettings(computedOf(provider).platform, undefined), constraints }
}

const USUAL = { conf: '/etc/cni/net.d', bin: '/opt/cni/bin', health: '9099', probed: 'default', settings: {}, constraints: [] }

test.each<readonly [Provider, ReturnType<typeof rowOf>]>([
  ['Generic', USUAL],
  ['KOPS', USUAL],
  [
    'OpenShift',
    {
      ...USUAL,
      ...{ conf: '/var/run/multus/cni/net.d', bin: '/var/lib/cni/bin', health: '9199' },
      constraints: ['netplane-preflight', 'netplane-endpoint-proof', 'netplane-node', 'netplane-cleanup'],
    },
  ],
  ['AKS', USUAL],
  ['EKS', USUAL],
  ['MKE', { ...USUAL, probed: '8472', settings: { vxlanPort: 8472, vxlanVNI: 10_000 } }],
  ['RKE2', USUAL],
])('%s', (provider, row) => {
  expect(rowOf(provider)).toEqual(row)
})

test('the rows are those of every platform there is', () => {
  for (const provider of PROVIDERS) expect(() => rowOf(provider)).not.toThrow()
  expect(PROVIDERS).toHaveLength(7)
})

interface PodSpec {
  readonly serviceAccountName: string
  readonly containers: readonly Container[]
  readonly initContainers?: readonly Container[]
  readonly volumes: readonly object[]
}

interface Container {
  readonly securityContext?: {
    readonly privileged?: boolean
    readonly allowPrivilegeEscalation?: boolean
    readonly capabilities?: { readonly add?: readonly string[] }
  }
}

test('on OpenShift each DaemonSet has an account whose constraints, which come before it, allow just what it asks for', () => {
  const objects = renderedOf('OpenShift')
  const sets = objects.filter(({ kind }) => kind === 'DaemonSet')
  expect(sets).toHaveLength(4)
  for (const set of sets) {
    const pod = fieldsOf(fieldsOf(set['spec'])['template'])['spec'] as PodSpec
    const at = objects.findIndex(({ kind, metadata }) => kind === 'SecurityContextConstraints' && metadata.name === pod.serviceAccountName)
    expect(at).toBeGreaterThanOrEqual(0)
    expect(at).toBeLessThan(objects.indexOf(set))
    const contexts = [...(pod.initContainers ?? []), ...pod.containers].map(({ securityContext = {} }) => securityContext)
    const isPrivileged = contexts.some(({ privileged }) => privileged === true)
    const added = [...new Set(contexts.flatMap(({ capabilities }) => capabilities?.add ?? []))].sort()
    const volumes = pod.volumes.flatMap((volume) => Object.keys(volume).filter((key) => key !== 'name'))
    expect(objects[at]).toMatchObject({
      users: [`system:serviceaccount:${NAMESPACE}:${pod.serviceAccountName}`],
      allowPrivilegedContainer: isPrivileged,
      allowPrivilegeEscalation: contexts.some(({ allowPrivilegeEscalation }) => allowPrivilegeEscalation === true) || isPrivileged,
      allowedCapabilities: isPrivileged ? ['*'] : added,
      allowHostNetwork: true,
      volumes: expect.arrayContaining(volumes) as unknown,
    })
  }
})

test('what the server insists on is in every constraint', () => {
  const required = [
    ...['allowHostDirVolumePlugin', 'allowHostIPC', 'allowHostNetwork', 'allowHostPID', 'allowHostPorts', 'allowPrivilegedContainer'],
    ...['allowedCapabilities', 'defaultAddCapabilities', 'priority', 'readOnlyRootFilesystem', 'requiredDropCapabilities', 'volumes'],
  ]
  const all = renderedOf('OpenShift').filter(({ kind }) => kind === 'SecurityContextConstraints')
  for (const one of all) expect(Object.keys(one)).toEqual(expect.arrayContaining(required))
})

test.each([
  [{}, { vxlanPort: 8472, vxlanVNI: 10_000 }, 8472],
  [{ vxlanPort: 4790 }, { vxlanVNI: 10_000 }, 4790],
  [{ vxlanPort: 4790, vxlanVNI: 7 }, {}, 4790],
])('MKE, where FelixConfiguration says %j: %j is set, and port %d probed', (spec, missing, port) => {
  const { platform } = computedOf('MKE')
  expect(missingSettings(platform, felix(spec))).toEqual(missing)
  expect(tunnelPort(platform, felix(spec))).toBe(port)
})

test('elsewhere FelixConfiguration alone says of the tunnel', () => {
  const { platform } = computedOf('Generic')
  expect([missingSettings(platform, undefined), missingSettings(platform, felix({}))]).toEqual([{}, {}])
  expect([tunnelPort(platform, undefined), tunnelPort(platform, felix({ vxlanPort: 4790 }))]).toEqual([undefined, 4790])
})
