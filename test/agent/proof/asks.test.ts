// SPDX-License-Identifier: Apache-2.0
/** Which services a node asks. Layer: test. */
import { expect, test } from 'vitest'
import { parseCidr } from '#lib/base/ip.ts'
import { askText, asksOf, asksOfNode, endpointsNow, placeText } from '#agent/proof/asks.ts'
import { node, nodeNetwork, service, slice, snapshotOf, type Manifest } from '../../support/build.ts'

const SELF = node('n1', { addresses: ['192.168.0.1'] })

function asksFor(manifests: readonly Manifest[], excluded: readonly string[] = []) {
  return asksOf({ snapshot: snapshotOf([SELF, ...manifests]), node: 'n1', excluded: excluded.map(parseCidr) })
}

function texts(manifests: readonly Manifest[], excluded: readonly string[] = []): string[] {
  return asksFor(manifests, excluded).map(askText)
}

function udp(name: string, port: number, ip: string): Manifest[] {
  return [
    service(name, { clusterIPs: [ip], ports: [{ port, protocol: 'UDP' }] }),
    slice(`${name}-1`, { ...here, ports: [{ port: 53, protocol: 'UDP' }] }),
  ]
}

const here = { endpoints: [{ addr: '10.0.1.1', node: 'n1' }] }
const there = { endpoints: [{ addr: '10.0.2.1', node: 'n2' }] }

test('two of each type are asked, by name, and default/kubernetes first', () => {
  const names = ['d', 'c', 'b', 'a', 'kubernetes']
  const many = names.map((name, at) => service(name, { clusterIPs: [`10.96.0.${at + 1}`] }))
  expect(texts([...many, ...names.map((name) => slice(`${name}-1`, here))])).toEqual([
    'Service default/kubernetes, TCP 10.96.0.5:80',
    'Service default/a, TCP 10.96.0.4:80',
  ])
})

test('node ports are asked by the address of the node, and types are told apart by policy and affinity', () => {
  const ports = [{ port: 80, nodePort: 30080 }]
  const local = { externalTrafficPolicy: 'Local' }
  const found = texts([
    ...[service('plain', { type: 'NodePort', ports }), slice('plain-1', there)],
    ...[
      service('local', { type: 'NodePort', clusterIPs: ['10.96.0.2'], ports: [{ port: 80, nodePort: 30081 }], spec: local }),
      slice('local-1', here),
    ],
    ...[service('sticky', { clusterIPs: ['10.96.0.3'], spec: { sessionAffinity: 'ClientIP' } }), slice('sticky-1', here)],
  ])
  expect(found.sort()).toEqual([
    'Service default/local, TCP 10.96.0.2:80',
    'Service default/local, TCP 192.168.0.1:30081',
    'Service default/plain, TCP 10.96.0.1:80',
    'Service default/plain, TCP 192.168.0.1:30080',
    'Service default/sticky, TCP 10.96.0.3:80',
  ])
})

test('a name server is asked for a name, and another UDP service by a datagram, which processes of the node do not send', () => {
  const asks = asksFor([...udp('dns', 53, '10.96.0.1'), ...udp('game', 9999, '10.96.0.2')])
  expect(asks.map((ask) => [askText(ask), ask.how])).toEqual([
    ['Service default/dns, UDP 10.96.0.1:53', 'name'],
    ['Service default/game, UDP 10.96.0.2:9999', 'datagram'],
  ])
  expect(asksOfNode(asks).map(({ how }) => how)).toEqual(['name'])
})

test('no datagram is sent where an endpoint is the node itself, by any of its addresses: nothing would end it before', () => {
  const endpoints = (addr: string) => ({ endpoints: [{ addr, node: 'n1' }], ports: [{ port: 9999, protocol: 'UDP' }] })
  const interfaces = [{ name: 'eth1', addresses: ['198.51.100.1'] }]
  const [game] = udp('game', 9999, '10.96.0.2')
  const asked = (addr: string) =>
    texts([...(game ? [game] : []), slice('game-1', endpoints(addr)), nodeNetwork('n1', { addresses: [], podCIDRs: [], interfaces })])
  expect([asked('192.168.0.1'), asked('198.51.100.1')]).toEqual([[], []])
  expect(asked('10.0.1.1')).toHaveLength(1)
})

test('a node port is asked with the endpoints that clients on the node have, whatever the policy of the cluster address', () => {
  const ports = [{ port: 80, nodePort: 30080 }]
  const asks = asksFor([service('web', { type: 'NodePort', ports, spec: { internalTrafficPolicy: 'Local' } }), slice('web-1', there)])
  expect(asks.map((ask) => [askText(ask), ask.endpoints.map(placeText)])).toEqual([
    ['Service default/web, TCP 192.168.0.1:30080', ['10.0.2.1:8080']],
  ])
})

test('endpoints of an ask are found anew: those that went are none of it, nor any of a service that went', () => {
  const input = (manifests: readonly Manifest[]) => ({ snapshot: snapshotOf([SELF, ...manifests]), node: 'n1', excluded: [] })
  const web = service('web')
  const [ask] = asksOf(input([web, slice('web-1', { endpoints: [...here.endpoints, ...there.endpoints] })]))
  if (ask === undefined) throw new Error('nothing is asked')
  expect(ask.endpoints.map(placeText)).toEqual(['10.0.1.1:8080', '10.0.2.1:8080'])
  expect(endpointsNow(ask, input([web, slice('web-1', there)])).map(placeText)).toEqual(['10.0.2.1:8080'])
  expect(endpointsNow(ask, input([]))).toEqual([])
})

test('what could not answer is not asked: without endpoints, without local ones where these alone count, or not ours to serve', () => {
  expect(texts([service('none')])).toEqual([])
  expect(texts([service('local', { spec: { internalTrafficPolicy: 'Local' } }), slice('local-1', there)])).toEqual([])
  expect(texts([service('cache'), slice('cache-1', here)], ['10.96.0.0/24'])).toEqual([])
})
