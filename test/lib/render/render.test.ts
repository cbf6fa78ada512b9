// SPDX-License-Identifier: Apache-2.0
/** What an Installation becomes: settings by platform, and the objects of the nodes. Layer: test. */
import { expect, test } from 'vitest'
import { installationSpec, PROVIDERS } from '#lib/kube/schema/installation.ts'
import { computeInstallation } from '#lib/render/computed.ts'
import { imageOf } from '#lib/render/image.ts'
import { PLATFORMS } from '#lib/render/providers.ts'
import { renderNode } from '#lib/render/render.ts'

const FACTS = { provider: 'Generic', hasKubeProxy: false, isFresh: true } as const

function computed(spec: unknown, facts: Parameters<typeof computeInstallation>[1] = FACTS): ReturnType<typeof computeInstallation> {
  return computeInstallation(installationSpec.read(spec), facts)
}

test('an empty Installation is all of ours, and BPF where no kube-proxy is', () => {
  expect(computed({})).toMatchObject({ variant: 'Netplane', cni: 'Netplane', linuxDataplane: 'BPF', hostPorts: true, maxUnavailable: 1 })
  expect(computed({}, { ...FACTS, hasKubeProxy: true }).linuxDataplane).toBe('Standard')
  expect(computed({}, { ...FACTS, isFresh: false }).linuxDataplane).toBe('Standard')
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
    Object.entries(platform).flatMap(([key, value]) => (value === usual[key] ? [] : [`${key}=${String(value)}`])),
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
    ],
    AKS: ['proxy=keep'],
    EKS: ['nameserver=169.254.169.253'],
    MKE: ['vxlanPort=8472', 'vxlanVni=10000'],
    RKE2: [],
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
          containers: [{ name: 'netplane-node', resources: { requests: { cpu: '1' } } }],
        },
      },
    },
  })
})

test('an endpoint that was proven is in the pods themselves, any other is read from the config map', () => {
  const rendered = (endpoint: { host: string; port: string } | undefined): string =>
    JSON.stringify(renderNode({ namespace: 'netplane-system', image: 'i', computed: computed({}), endpoint }))
  expect(rendered({ host: 'api', port: '6443' })).toContain('{"name":"CLUSTER_SERVICE_HOST","value":"api"}')
  expect(rendered(undefined)).toContain(
    '"configMapKeyRef":{"name":"cluster-services-endpoint","key":"CLUSTER_SERVICE_HOST","optional":true}',
  )
})
