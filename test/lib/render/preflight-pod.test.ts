// SPDX-License-Identifier: Apache-2.0
/** The DaemonSet of a preflight: a container a group, with what its probes need and no more. Layer: test. */
import { expect, test } from 'vitest'
import { parseOptions } from '#agent/run/options.ts'
import { installationSpec } from '#lib/kube/schema/installation.ts'
import { PROBE_GROUPS } from '#lib/preflight/findings.ts'
import { RUN_ANNOTATION } from '#lib/preflight/results.ts'
import { computeInstallation } from '#lib/render/computed.ts'
import { renderPreflight, type PreflightInput } from '#lib/render/preflight-pod.ts'

const FACTS = { provider: 'Generic', hasKubeProxy: false, installed: undefined } as const

function input(spec: unknown = {}, more: Partial<PreflightInput> = {}): PreflightInput {
  return {
    namespace: 'netplane-system',
    image: 'example.com/netplane:3.31.5',
    computed: computeInstallation(installationSpec.read(spec), FACTS),
    endpoint: { host: 'fd00::1', port: '6443' },
    serviceAddresses: ['10.96.0.1', 'fd96::1'],
    peers: [
      { name: 'b', addresses: ['192.168.0.2', 'fd00::2'] },
      { name: 'a', addresses: ['192.168.0.1'] },
    ],
    vxlanPort: 4789,
    run: '7',
    ...more,
  }
}

interface Mount {
  readonly name: string
  readonly readOnly?: boolean
}

interface Container {
  readonly name: string
  readonly command: readonly string[]
  readonly args: readonly string[]
  readonly securityContext: { readonly capabilities: { readonly add?: readonly string[] } }
  readonly volumeMounts: readonly Mount[]
}

interface Pod {
  readonly metadata: { readonly annotations: unknown }
  readonly spec: {
    readonly initContainers: readonly Container[]
    readonly containers: readonly unknown[]
    readonly volumes: readonly Mount[]
  }
}

interface Rendered {
  readonly pod: Pod
  readonly containers: ReadonlyMap<string, Container>
  readonly objects: ReturnType<typeof renderPreflight>
}

function rendered(of: PreflightInput): Rendered {
  const objects = renderPreflight(of)
  const { template } = objects.find(({ kind }) => kind === 'DaemonSet')?.['spec'] as { readonly template: Pod }
  return { objects, pod: template, containers: new Map(template.spec.initContainers.map((one) => [one.name, one])) }
}

/** The command as the kubelet runs it, with its variables replaced. */
function argvOf(container: Container | undefined): string[] {
  const values = { '$(NODE_NAME)': 'a', '$(NODE_ADDRESSES)': '192.168.0.1,fd00::1' }
  const words = container === undefined ? [] : [...container.command.slice(1), ...container.args]
  return words.map((word) => Object.entries(values).reduce((text, [name, value]) => text.replace(name, value), word))
}

test('each group is a container that the agent takes the flags of', () => {
  const { containers } = rendered(input({ netplaneNetwork: { mtu: 1400 } }))
  expect([...containers.keys()]).toEqual(PROBE_GROUPS)
  for (const [group, container] of containers)
    expect(parseOptions(argvOf(container))).toMatchObject({
      kind: 'preflight',
      options: { groups: [group], terminationLog: '/dev/termination-log' },
    })
  const options = (group: string): unknown => parseOptions(argvOf(containers.get(group)))
  expect(options('devices')).toMatchObject({ options: { addresses: ['192.168.0.1', 'fd00::1'], mtu: 1400, cni: 'Netplane' } })
  expect(options('endpoint')).toMatchObject({
    options: { endpoint: { host: 'fd00::1', port: 6443 }, serviceAddresses: ['10.96.0.1', 'fd96::1'] },
  })
  expect(options('kernel')).toMatchObject({
    options: { nodeRoot: '/host/root', hostPaths: ['/run/netplane', '/var/lib/netplane', '/etc/cni/net.d', '/opt/cni/bin'] },
  })
  expect(options('others')).toMatchObject({ options: { nodeRoot: '/host/root', confDir: '/etc/cni/net.d' } })
  expect(options('vxlan')).toMatchObject({
    options: { node: 'a', run: '7', vxlanPort: 4789, peers: '/etc/netplane-preflight/peers', peersTimeoutMs: 15_000 },
  })
  const patient = rendered(input({}, { peersTimeoutS: 45 })).containers.get('vxlan')
  expect(parseOptions(argvOf(patient))).toMatchObject({ options: { peersTimeoutMs: 45_000 } })
})

test('containers have the capabilities and mounts that their probes need', () => {
  const { containers, pod } = rendered(input())
  const needs = [...containers.values()].map(({ name, securityContext, volumeMounts }) => [
    name,
    (securityContext.capabilities.add ?? []).join(),
    volumeMounts.map((mount) => `${mount.name}${mount.readOnly === true ? '' : ' rw'}`).join(),
  ])
  expect(needs).toEqual([
    ['kernel', 'NET_ADMIN,NET_RAW,SYS_ADMIN', 'sys-fs,node-root rw,tmp rw'],
    ['devices', '', 'tmp rw'],
    ['others', 'NET_ADMIN,NET_RAW,SYS_ADMIN', 'sys-fs,node-root,tmp rw'],
    ['endpoint', '', 'account,tmp rw'],
    ['vxlan', 'NET_RAW', 'peers,tmp rw'],
  ])
  expect(pod.spec).toMatchObject({ hostNetwork: true, dnsPolicy: 'Default', automountServiceAccountToken: false })
  expect(JSON.stringify(pod)).not.toContain('privileged')
  // the last words of a program that does not start are the kubelet's message
  for (const container of containers.values()) expect(container).toMatchObject({ terminationMessagePolicy: 'FallbackToLogsOnError' })
  expect(pod.metadata.annotations).toEqual({ [RUN_ANNOTATION]: '7' })
  expect(pod.spec.containers).toHaveLength(1)
})

test('one group alone brings its own container and volumes, under another name', () => {
  const { containers, pod, objects } = rendered(input({}, { groups: ['endpoint'], name: 'netplane-endpoint' }))
  expect([...containers.keys()]).toEqual(['endpoint'])
  expect(pod.spec.volumes.map(({ name }) => name)).toEqual(['account', 'tmp'])
  expect(new Set(objects.map(({ metadata }) => metadata.name))).toEqual(new Set(['netplane-endpoint']))
  expect(objects.map(({ metadata }) => metadata.labels?.['app.kubernetes.io/name'])).toEqual(objects.map(() => 'netplane-endpoint'))
})

test('the account may read one namespace', () => {
  const { objects } = rendered(input())
  expect(objects.map(({ kind }) => kind)).toEqual(['ServiceAccount', 'ClusterRole', 'ClusterRoleBinding', 'ConfigMap', 'DaemonSet'])
  expect(objects[1]?.['rules']).toEqual([{ apiGroups: [''], resources: ['namespaces'], resourceNames: ['kube-system'], verbs: ['get'] }])
  expect(objects[3]?.['data']).toEqual({ peers: 'a 192.168.0.1\nb 192.168.0.2 fd00::2\n' })
})

test('without peers the tunnel is not asked; without a plugin no network configuration', () => {
  const { containers } = rendered(input({ cni: { type: 'None' }, imagePullSecrets: [{ name: 's' }] }, { peers: [], vxlanPort: undefined }))
  expect(containers.get('vxlan')?.args).toEqual([])
  expect(JSON.stringify(containers.get('others'))).not.toContain('"node-root"')
  const spec = rendered(input({ imagePullSecrets: [{ name: 's' }], nodePods: { nodeSelector: { a: 'b' } } })).pod.spec
  expect(spec).toMatchObject({ imagePullSecrets: [{ name: 's' }], nodeSelector: { a: 'b', 'kubernetes.io/os': 'linux' } })
})
