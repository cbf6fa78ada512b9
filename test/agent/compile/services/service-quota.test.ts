// SPDX-License-Identifier: Apache-2.0
/** What one service may have of the tables. Layer: test. */
import { expect, test } from 'vitest'
import { service, slice, type Manifest, type ServiceSpec } from '../../../support/build.ts'
import { showFragment } from '../../../support/show.ts'
import { World } from '../world.ts'

const MIB = 1024 * 1024

function times<T>(count: number, make: (at: number) => T): readonly T[] {
  return Array.from({ length: count }, (_, at) => make(at))
}

function addresses(count: number): readonly string[] {
  return times(count, (at) => `198.51.${Math.floor(at / 256)}.${at % 256}`)
}

function ports(count: number): NonNullable<ServiceSpec['ports']> {
  return times(count, (at) => ({ name: `p${at}`, port: 1000 + at }))
}

function ranges(count: number): readonly string[] {
  return times(count, (at) => `${at.toString(16)}::/16`)
}

const balancer = (count: number): ServiceSpec => ({
  type: 'LoadBalancer',
  clusterIPs: ['fd00::1'],
  ingress: [{ ip: '2001:db8::1' }],
  // distinct ones are few, but it is what is written that counts
  spec: { loadBalancerSourceRanges: times(count, (at) => ranges(16)[at % 16]) },
})

const endpoints = (count: number, more: object = {}): Manifest =>
  slice('big-1', {
    ports: times(100, (at) => ({ name: `p${at}`, port: 8000 + at })),
    endpoints: times(count, (at) => ({ addr: `10.1.${Math.floor(at / 250)}.${at % 250}`, ...more })),
  })

test.each<[string, readonly Manifest[], string]>([
  [
    'addresses times ports',
    [service('big', { ports: ports(100), spec: { externalIPs: addresses(700) } })],
    'addresses times ports than one Service may have: 8192',
  ],
  [
    'addresses times ports, beyond what there is memory for',
    [service('big', { ports: ports(10_000), spec: { externalIPs: addresses(50_000) } })],
    'addresses times ports than one Service may have: 8192',
  ],
  ['source ranges', [service('big', balancer(126_000))], 'source ranges, those of each port counted, than one Service may have: 8192'],
  ['endpoints', [service('big', { ports: ports(100) }), endpoints(1000)], 'endpoints of all its ports than one Service may have: 65536'],
  [
    'endpoints that flows may stay with',
    [service('big', { ports: ports(100), spec: { sessionAffinity: 'ClientIP' } }), endpoints(200)],
    'endpoints of its UDP ports, or of all with affinity, than one Service may have: 16384',
  ],
  [
    'endpoints that are not ready',
    [service('big', { ports: ports(100) }), endpoints(2700, { ready: false })],
    'endpoints of all its ports, ready or not, than one Service may have: 262144',
  ],
])('a Service with too many %s has nothing, and others have theirs', (_, big, reason) => {
  const world = new World(...big, service('web', { clusterIPs: ['10.96.0.9'] }))
  const before = process.memoryUsage().heapUsed
  const rows = world
    .compile()
    .fragments.filter(({ owner }) => owner.startsWith('Service/'))
    .map(showFragment)
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(200 * MIB)
  expect(rows).toEqual(['Service/default/web\n  10.96.0.9:80/TCP -> #1 of 0\n  10.96.0.9 service'])
  expect(world.conflicts).toEqual([`Service default/big: has more ${reason}`])
  world.put(service('big', { clusterIPs: ['10.96.0.8'] }))
  expect(world.owners()).toEqual(['Service/default/big'])
  expect(world.conflicts).toEqual([])
})

test('a large Service is served', () => {
  const world = new World(service('big', { ports: ports(100), spec: { externalIPs: addresses(80) } }), endpoints(600))
  expect(world.compile().fragments.find(({ owner }) => owner === 'Service/default/big')?.rows.length).toBe(100 * 81 + 81 + 100 * 600)
  expect(world.conflicts).toEqual([])
})
