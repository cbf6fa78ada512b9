// SPDX-License-Identifier: Apache-2.0
/** Services: what is read, what is left out, what is refused. Layer: test. */
import { describe, expect, test } from 'vitest'
import { formatAddr, formatCidr } from '#lib/base/ip.ts'
import { rejectedText } from '#lib/base/result.ts'
import { parseObject } from '#lib/kube/parse/parse-object.ts'
import type { Service } from '#lib/model/service.ts'
import { service } from '../../../support/build.ts'
import type { Manifest, ServiceSpec } from '../../../support/build.ts'

function parse(manifest: Manifest): { readonly service: Service | undefined; readonly rejected: readonly string[] } {
  const parsed = parseObject(manifest, { kind: 'Service', namespace: 'default', name: 'web' })
  const value = parsed.kind === 'ok' && parsed.value.kind === 'Service' ? parsed.value : undefined
  return { service: value, rejected: parsed.rejected.map((rejected) => rejectedText({ ...rejected, ref: '' })) }
}

function spec(of: ServiceSpec): ReturnType<typeof parse> {
  return parse(service('web', of))
}

describe('is read', () => {
  test('whole', () => {
    const { service: read, rejected } = spec({
      type: 'LoadBalancer',
      clusterIPs: ['10.96.0.1', 'fd00::1'],
      ports: [
        { name: 'http', protocol: 'TCP', port: 80, nodePort: 30080, targetPort: 'web' },
        { name: 'dns', protocol: 'UDP', port: 53, targetPort: 5353 },
      ],
      ingress: [{ ip: '192.0.2.1' }, { ip: '192.0.2.2', ipMode: 'Proxy' }, { hostname: 'lb.example' }],
      spec: { externalIPs: ['198.51.100.1'], publishNotReadyAddresses: true, healthCheckNodePort: 31000 },
    })
    expect(rejected).toEqual([])
    expect(read).toMatchObject({
      kind: 'Service',
      namespace: 'default',
      name: 'web',
      type: 'LoadBalancer',
      families: ['IPv4', 'IPv6'],
      ports: [
        { name: 'http', protocol: 'TCP', port: 80, nodePort: 30080, targetPort: 'web' },
        { name: 'dns', protocol: 'UDP', port: 53, nodePort: undefined, targetPort: 5353 },
      ],
      externalTrafficPolicy: 'Cluster',
      internalTrafficPolicy: 'Cluster',
      publishNotReadyAddresses: true,
      healthCheckNodePort: 31000,
    })
    expect([read?.notServed, read?.affinitySeconds]).toEqual([undefined, undefined])
    expect(read?.clusterIPs.map(formatAddr)).toEqual(['10.96.0.1', 'fd00::1'])
    expect(read?.externalIPs.map(formatAddr)).toEqual(['198.51.100.1'])
    expect(read?.loadBalancerIPs.map(formatAddr)).toEqual(['192.0.2.1'])
  })

  test('a service is read with defaults', () => {
    const { service: read } = parse({ spec: { clusterIP: '10.96.0.1', ports: [{ port: 80 }] } })
    expect(read).toMatchObject({ type: 'ClusterIP', families: ['IPv4'], ports: [{ name: '', protocol: 'TCP', port: 80, targetPort: 80 }] })
  })

  test.each<[string, ServiceSpec, Service['notServed']]>([
    ['headless', { clusterIPs: ['None'] }, 'headless'],
    ['excluded', { annotations: { 'netplane.io/nat-exclude-service': 'true' } }, 'excluded'],
    ['not excluded', { annotations: { 'netplane.io/nat-exclude-service': 'false' } }, undefined],
    ['headless without ports', { clusterIPs: ['None'], ports: [] }, 'headless'],
    ['headless by label', { labels: { 'service.kubernetes.io/headless': '' } }, 'headless'],
    ['of another proxy', { labels: { 'service.kubernetes.io/service-proxy-name': 'other' } }, 'other-proxy'],
    ['a name outside', { type: 'ExternalName', clusterIPs: [], ports: [], spec: { externalName: 'example.org' } }, 'external-name'],
  ])('a service is left alone: %s', (_, of, why) => {
    expect(spec(of)).toMatchObject({ service: { notServed: why }, rejected: [] })
  })

  test('families without cluster address: as it says itself', () => {
    expect(spec({ clusterIPs: [], spec: { ipFamilies: ['IPv6'] } }).service?.families).toEqual(['IPv6'])
    expect(spec({ clusterIPs: [] }).service?.families).toEqual(['IPv4'])
  })
})

describe('is used without', () => {
  test.each<[string, ServiceSpec, string]>([
    [
      'SCTP ports',
      {
        ports: [
          { name: 'a', port: 80 },
          { name: 'b', port: 81, protocol: 'SCTP' },
        ],
      },
      'spec.ports[1].protocol: SCTP is not supported',
    ],
    ['a broken external address', { spec: { externalIPs: ['198.51.100.1', '10.0.0'] } }, 'spec.externalIPs[1]: must be an IP address'],
    ['an external address of a group', { spec: { externalIPs: ['232.1.2.3'] } }, 'spec.externalIPs[0]: must not be a multicast address'],
    ['an external loopback address', { spec: { externalIPs: ['127.0.0.1'] } }, 'spec.externalIPs[0]: must not be a loopback address'],
    [
      'a link-local ingress address',
      { ingress: [{ ip: '169.254.169.254' }] },
      'status.loadBalancer.ingress[0].ip: must not be a link-local address',
    ],
    ['a cluster address', { clusterIPs: [] }, 'spec.clusterIP: is missing: the service has no cluster address'],
    [
      'a range that is none',
      { spec: { loadBalancerSourceRanges: ['192.0.2.0'] } },
      'spec.loadBalancerSourceRanges[0]: must be an IP prefix, like 10.0.0.0/24',
    ],
    [
      'a range of another family',
      { spec: { loadBalancerSourceRanges: ['fd00::/8'] } },
      'spec.loadBalancerSourceRanges: fd00::/8 is of a family that the service does not have',
    ],
    [
      'a choice of endpoints that we do not have',
      { annotations: { 'netplane.io/backend-selection': 'Least' } },
      "metadata.annotations['netplane.io/backend-selection']: must be Random or Maglev",
    ],
  ])('%s', (_, of, reason) => {
    const { service: read, rejected } = spec(of)
    expect(rejected).toEqual([reason])
    expect(read?.ports.map(({ port }) => port)).toEqual([80])
  })

  test('affinity, ranges, choice of endpoints', () => {
    const read = spec({
      spec: {
        sessionAffinity: 'ClientIP',
        sessionAffinityConfig: { clientIP: { timeoutSeconds: 60 } },
        loadBalancerSourceRanges: [' 192.0.2.7/24'],
      },
      annotations: { 'netplane.io/backend-selection': 'Maglev' },
    }).service
    expect(read?.backendSelection).toBe('Maglev')
    expect(read?.affinitySeconds).toBe(60)
    expect(read?.loadBalancerSourceRanges?.map(formatCidr)).toEqual(['192.0.2.0/24'])
    const bare = spec({ spec: { sessionAffinity: 'ClientIP' } }).service
    expect([bare?.affinitySeconds, bare?.loadBalancerSourceRanges, bare?.backendSelection]).toEqual([10_800, undefined, undefined])
    expect(spec({ spec: { loadBalancerSourceRanges: ['x'] } }).service?.loadBalancerSourceRanges, 'nobody, not everybody').toEqual([])
  })
})

describe('is refused whole for', () => {
  test.each<[Manifest, string]>([
    [{}, 'spec.ports: must have at least one'],
    [{ spec: [] }, 'spec: must be an object'],
    [{ spec: { ports: {} } }, 'spec.ports: must be a list'],
    [{ spec: { ports: ['80'] } }, 'spec.ports[0]: must be an object'],
    [{ metadata: { labels: 'x' } }, 'metadata.labels: must be an object'],
    [service('web', { type: 'Other' }), 'spec.type: must be ClusterIP or NodePort or LoadBalancer or ExternalName'],
    [service('web', { ports: [{ port: 0 }] }), 'spec.ports[0].port: must be 1..65535'],
    [service('web', { ports: [{ port: 99999 }] }), 'spec.ports[0].port: must be 1..65535'],
    [{ spec: { ports: [{ port: '80' }] } }, 'spec.ports[0].port: must be 1..65535'],
    [{ spec: { ports: [{}] } }, 'spec.ports[0].port: is missing'],
    [
      service('web', {
        ports: [
          { name: 'a', port: 80 },
          { name: 'b', port: 81, nodePort: 70000 },
        ],
      }),
      'spec.ports[1].nodePort: must be 1..65535',
    ],
    [
      service('web', { type: 'ClusterIP', ports: [{ port: 80, nodePort: 30080 }] }),
      'spec.ports[0].nodePort: must not be set when type is ClusterIP',
    ],
    [service('web', { ports: [{ port: 80, protocol: 'tcp' }] }), 'spec.ports[0].protocol: must be TCP or UDP or SCTP'],
    [
      service('web', { ports: [{ name: 'a', port: 80 }, { port: 81 }] }),
      'spec.ports[1].name: is missing: needed when there are several ports',
    ],
    [
      service('web', {
        ports: [
          { name: 'a', port: 80 },
          { name: 'a', port: 81 },
        ],
      }),
      'spec.ports[1].name: is used twice',
    ],
    [
      service('web', {
        ports: [
          { name: 'a', port: 80 },
          { name: 'b', port: 80 },
        ],
      }),
      'spec.ports[1].port: is used twice for this protocol',
    ],
    [
      service('web', {
        ports: [
          { name: 'a', port: 80, nodePort: 30080 },
          { name: 'b', port: 81, nodePort: 30080 },
        ],
      }),
      'spec.ports[1].nodePort: is used twice for this protocol',
    ],
    [service('web', { ports: [{ name: 'Web', port: 80 }] }), 'spec.ports[0].name: must be lower-case letters, digits and "-"'],
    [service('web', { clusterIPs: ['10.96.0.1', '10.96.0.2'] }), 'spec.clusterIPs: must be at most one of each family'],
    [service('web', { spec: { externalTrafficPolicy: 'Some' } }), 'spec.externalTrafficPolicy: must be Cluster or Local'],
    [service('web', { spec: { ipFamilies: ['IPv5'] } }), 'spec.ipFamilies[0]: must be IPv4 or IPv6'],
    [service('web', { spec: { publishNotReadyAddresses: 'yes' } }), 'spec.publishNotReadyAddresses: must be true or false'],
    [
      service('web', { spec: { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 0 } } } }),
      'spec.sessionAffinityConfig.clientIP.timeoutSeconds: must be 1..86400',
    ],
  ])('%#: %j', (manifest, reason) => {
    expect(parse(manifest)).toEqual({ service: undefined, rejected: [reason] })
  })

  test('the same port for two protocols is fine', () => {
    const ports = [
      { name: 'dns', port: 53, protocol: 'UDP', nodePort: 30053 },
      { name: 'dns-tcp', port: 53, nodePort: 30053 },
    ]
    expect(spec({ ports }).rejected).toEqual([])
  })
})
