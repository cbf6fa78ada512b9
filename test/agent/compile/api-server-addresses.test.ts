// SPDX-License-Identifier: Apache-2.0
/** Services that want to be where an API server is asked. Layer: test. */
import { describe, expect, test } from 'vitest'
import { formatCidr, parseAddr, parseCidr, parsePort } from '#lib/base/ip.ts'
import type { ApiServerAddress } from '#agent/compile/api-server-addresses.ts'
import { node, service, slice, type Manifest, type ServiceSpec } from '../../support/build.ts'
import { showFragment } from '../../support/show.ts'
import { World } from './world.ts'

const SELF = node('n1', { addresses: ['192.168.0.1', 'fd00::1'] })

function at(addr: string, port: number, here = false): ApiServerAddress {
  return { addr: parseAddr(addr), port: parsePort(port), here }
}

function thief(of: ServiceSpec): readonly Manifest[] {
  return [service('thief', { clusterIPs: ['10.96.0.9', 'fd96::9'], ...of }), slice('thief-1', { endpoints: ['10.0.1.1'] })]
}

class Node extends World {
  constructor(servers: readonly ApiServerAddress[], ...manifests: readonly Manifest[]) {
    super(SELF, ...manifests)
    this.input = { ...this.input, servers }
  }

  /** Frontends that come out of a compilation, "10.0.0.1:80/TCP". */
  frontends(): string[] {
    return this.compile().fragments.flatMap((fragment) => showFragment(fragment).match(/\S+(?= ->)/g) ?? [])
  }

  /** Ends of those of a compilation that are one address. */
  failsafes(): string[] {
    const rows = this.compile().fragments.flatMap((fragment) => fragment.rows)
    return rows.flatMap((row) => (row.table === 'failsafes' && row.key.cidr.bits === 32 ? [formatCidr(row.key.cidr)] : []))
  }
}

const refusal = (place: string): string =>
  `Service default/thief: ${place} is where an API server is asked: no Service may have it, in part`

interface Case {
  readonly servers: readonly ApiServerAddress[]
  readonly of: ServiceSpec
  readonly place: string
}

const SERVER = [at('203.0.113.9', 6443)]
const V4 = '203.0.113.9:6443/TCP'

test.each<[string, Case]>([
  ['as external address', { servers: SERVER, of: { spec: { externalIPs: ['203.0.113.9'] } }, place: V4 }],
  [
    'as IPv6 external address',
    { servers: [at('2001:db8::9', 6443)], of: { spec: { externalIPs: ['2001:db8::9'] } }, place: '[2001:db8::9]:6443/TCP' },
  ],
  ['as load balancer', { servers: SERVER, of: { ingress: [{ ip: '203.0.113.9' }] }, place: V4 }],
  [
    'as load balancer with source ranges',
    {
      servers: SERVER,
      of: { type: 'LoadBalancer', ingress: [{ ip: '203.0.113.9' }], spec: { loadBalancerSourceRanges: ['0.0.0.0/0'] } },
      place: V4,
    },
  ],
  [
    'as one of several servers',
    { servers: [at('203.0.113.8', 6443), ...SERVER], of: { spec: { externalIPs: ['203.0.113.9'] } }, place: V4 },
  ],
  [
    'as address of this node',
    { servers: [at('192.168.0.1', 6443, true)], of: { spec: { externalIPs: ['192.168.0.1'] } }, place: '192.168.0.1:6443/TCP' },
  ],
  ['as cluster address', { servers: [at('10.96.0.9', 6443)], of: {}, place: '10.96.0.9:6443/TCP' }],
])('a Service that has the place of an API server %s has it not, and its other places', (_, { servers, of, place }) => {
  const world = new Node(servers, ...thief({ ports: [{ port: 6443 }], ...of }))
  const found = world.frontends()
  expect(found).not.toContain(place)
  expect(found.length).toBeGreaterThan(0)
  expect(world.conflicts).toEqual([refusal(place)])
})

describe('a node port with the number of an API server\u2019s port', () => {
  const of = { ports: [{ port: 80, nodePort: 6443 }] }

  test.each<[string, ApiServerAddress, string]>([
    ['that this node has', at('192.168.0.1', 6443, true), '0.0.0.0:6443/TCP'],
    ['that this node has by IPv6', at('fd00::1', 6443, true), '[::]:6443/TCP'],
    ['on loopback', at('127.0.0.1', 6443), '0.0.0.0:6443/TCP'],
    ['on loopback by IPv6', at('::1', 6443), '[::]:6443/TCP'],
  ])('%s is refused', (_, server, place) => {
    const world = new Node([server], ...thief(of))
    expect(world.frontends()).not.toContain(place)
    expect(world.conflicts).toEqual([refusal(place)])
  })

  test('that another machine has is served', () => {
    const world = new Node([at('203.0.113.9', 6443)], ...thief(of))
    expect(world.frontends()).toContain('0.0.0.0:6443/TCP')
    expect(world.conflicts).toEqual([])
  })

  test('is served where node ports are not served on its address', () => {
    const world = new Node([at('192.168.0.1', 6443, true)], ...thief(of))
    const { settings } = world.input
    const nodes = { ...settings.nodes, nodePortAddresses: [parseCidr('198.51.100.0/24')] }
    world.input = { ...world.input, settings: { ...settings, nodes } }
    expect(world.frontends()).toContain('0.0.0.0:6443/TCP')
  })
})

test('a Service has other ports of an API server\u2019s address, and UDP, and not the address itself', () => {
  const ports = [
    { name: 'a', port: 8080 },
    { name: 'b', port: 6443, protocol: 'UDP' },
  ]
  const world = new Node([at('203.0.113.9', 6443)], ...thief({ ports, spec: { externalIPs: ['203.0.113.9'] } }))
  const change = world.compile()
  const of = (owner: string): string =>
    change.fragments
      .filter((one) => one.owner === owner)
      .map(showFragment)
      .join()
  expect(of('Service/default/thief')).toMatch(/203\.0\.113\.9:6443\/UDP ->[^]*203\.0\.113\.9:8080\/TCP ->/)
  expect(of('server/api')).toBe('server/api\n  203.0.113.9 of no kind')
  expect(world.conflicts).toEqual([])
})

describe('default/kubernetes', () => {
  const api = [
    service('kubernetes', { clusterIPs: ['10.96.0.1'], ports: [{ name: 'https', port: 443 }] }),
    slice('kubernetes', { service: 'kubernetes', ports: [{ name: 'https', port: 6443 }], endpoints: ['192.168.0.1', '192.168.0.2'] }),
  ]

  test('keeps its cluster address where the agent asks it there, and no other Service gets that', () => {
    const world = new Node([at('10.96.0.1', 443)], ...api, ...thief({ ports: [{ port: 443 }], spec: { externalIPs: ['10.96.0.1'] } }))
    const change = world.compile()
    expect(change.fragments.map(showFragment).filter((text) => text.includes('10.96.0.1\n') || text.endsWith('10.96.0.1'))).toEqual([])
    expect(change.fragments.map(showFragment).filter((text) => text.includes('10.96.0.1:443/TCP'))).toEqual([
      expect.stringMatching(/^Service\/default\/kubernetes/),
    ])
    expect(world.conflicts).toEqual(['Service default/thief: 10.96.0.1:443/TCP already belongs to Service/default/kubernetes, in part'])
  })

  test('has no external address where the agent asks', () => {
    const more = service('kubernetes', { clusterIPs: ['10.96.0.1'], ports: [{ port: 443 }], spec: { externalIPs: ['203.0.113.9'] } })
    expect(new Node([at('203.0.113.9', 443)], ...api, more).frontends()).not.toContain('203.0.113.9:443/TCP')
  })

  test('has endpoints that agents elsewhere may ask: no Service takes them but by a cluster address', () => {
    const spec = { externalIPs: ['192.168.0.1', '192.168.0.2'] }
    const ports = [{ port: 6443, nodePort: 6443 }]
    const world = new Node([], ...api, ...thief({ clusterIPs: ['10.96.0.9'], ports, spec }))
    expect(world.frontends().sort()).toEqual(['10.96.0.1:443/TCP', '10.96.0.9:6443/TCP'])
    const taken = new Node([], ...api, ...thief({ clusterIPs: ['192.168.0.2'], ports: [{ port: 6443 }] }))
    expect(taken.frontends()).toContain('192.168.0.2:6443/TCP')
  })

  test('has other endpoints by and by: the Service gets what is free, and loses what is not', () => {
    const world = new Node(
      [],
      ...api,
      ...thief({ clusterIPs: ['10.96.0.9'], ports: [{ port: 6443 }], spec: { externalIPs: ['192.168.0.2'] } }),
    )
    expect(world.frontends()).not.toContain('192.168.0.2:6443/TCP')
    world.put(slice('kubernetes', { service: 'kubernetes', ports: [{ name: 'https', port: 6443 }], endpoints: ['192.168.0.1'] }))
    expect(world.frontends()).toContain('192.168.0.2:6443/TCP')
    expect(world.conflicts).toEqual([])
    world.put(slice('kubernetes', { service: 'kubernetes', ports: [{ name: 'https', port: 6443 }], endpoints: ['192.168.0.2'] }))
    expect(world.owners()).toEqual(['Service/default/kubernetes', 'Service/default/thief', 'server/api'])
    expect(world.conflicts).toEqual([refusal('192.168.0.2:6443/TCP')])
  })

  test('is told first of what a Service loses, however much that is and whoever else was there before', () => {
    const lost = Array.from({ length: 130 }, (_, index) => `203.0.113.${index}`)
    const wants = (name: string, index: number, externalIPs: readonly string[]): Manifest =>
      service(name, { clusterIPs: [`10.96.1.${index}`], ports: [{ port: 6443 }], spec: { externalIPs } })
    const between = wants('b', 2, ['203.0.113.200'])
    const world = new Node([], ...api, wants('a', 1, lost), between, wants('c', 3, [...lost, '203.0.113.200']))
    world.compile()
    world.put(slice('kubernetes', { service: 'kubernetes', ports: [{ name: 'https', port: 6443 }], endpoints: ['203.0.113.200'] }))
    world.compile()
    world.drop(between)
    world.compile()
    const reason = '203.0.113.200:6443/TCP is where an API server is asked: no Service may have it'
    expect(world.conflicts[0]).toBe(`Service default/c: ${reason}, in part`)
  })

  test.each([
    ['not made by the API server', slice('kubernetes-1', said('192.168.0.9'))],
    ["an API server's, of one that does not serve", slice('kubernetes', { service: 'kubernetes', ...said('192.168.0.9', false) })],
  ])('has a slice that is %s: it keeps nothing free', (_, other) => {
    const objects = [...api, other, ...thief({ ports: [{ port: 6443 }], spec: { externalIPs: ['192.168.0.9'] } })]
    const world = new Node([], ...objects)
    expect(world.frontends()).toContain('192.168.0.9:6443/TCP')
    expect(world.conflicts).toEqual([])
    expect(new Node([], ...objects).failsafes()).not.toContain('192.168.0.9/32')
  })

  test('has endpoints that are failsafe ports of others', () => {
    expect(new Node([], ...api).failsafes()).toEqual(['192.168.0.1/32', '192.168.0.2/32'])
  })
})

/** Beside one that serves. */
function said(addr: string, serving = true) {
  const endpoint = { addr, ready: serving, serving }
  return { ports: [{ name: 'https', port: 6443 }], endpoints: ['192.168.0.1', endpoint] }
}

test('an API server that is found at another address gives one place back, and takes the other', () => {
  const spec = { externalIPs: ['203.0.113.8', '203.0.113.9'] }
  const world = new Node([at('203.0.113.8', 6443)], ...thief({ ports: [{ port: 6443 }], spec }))
  expect(world.frontends()).toContain('203.0.113.9:6443/TCP')
  world.input = { ...world.input, servers: [at('203.0.113.9', 6443)] }
  const found = world.frontends()
  expect(found).toContain('203.0.113.8:6443/TCP')
  expect(found).not.toContain('203.0.113.9:6443/TCP')
  expect(world.conflicts).toEqual([refusal('203.0.113.9:6443/TCP')])
})
