// SPDX-License-Identifier: Apache-2.0
/** Endpoint slices: conditions, families, ports. Layer: test. */
import { describe, expect, test } from 'vitest'
import { formatAddr, parseAddr } from '#lib/base/ip.ts'
import { rejectedText } from '#lib/base/result.ts'
import { parseObject } from '#lib/kube/parse/parse-object.ts'
import type { EndpointSlice } from '#lib/model/endpoint-slice.ts'
import { slice } from '../../../support/build.ts'
import type { Manifest, SliceSpec } from '../../../support/build.ts'

function parse(manifest: Manifest): EndpointSlice | readonly string[] {
  const parsed = parseObject(manifest, { kind: 'EndpointSlice', namespace: 'default', name: 'web-1' })
  if (parsed.kind === 'ok' && parsed.value.kind === 'EndpointSlice') return parsed.value
  return parsed.rejected.map((rejected) => rejectedText({ ...rejected, ref: '' }))
}

function read(of: SliceSpec): EndpointSlice {
  const parsed = parse(slice('web-1', of))
  if ('kind' in parsed) return parsed
  throw new Error(parsed.join('\n'))
}

describe('is read', () => {
  test('whole', () => {
    const value = read({
      ports: [
        { name: 'http', port: 8080 },
        { name: 'dns', protocol: 'UDP', port: 53 },
      ],
      endpoints: [{ addr: '10.0.0.1', node: 'n1', zone: 'a', ready: false, serving: true, terminating: true }],
    })
    expect(value).toMatchObject({
      service: 'web',
      addressType: 'IPv4',
      ports: [
        { name: 'http', protocol: 'TCP', port: 8080 },
        { name: 'dns', protocol: 'UDP', port: 53 },
      ],
      endpoints: [{ state: { ready: false, serving: true, terminating: true }, nodeName: 'n1', zone: 'a' }],
    })
    expect(value.endpoints.map(({ addr }) => formatAddr(addr))).toEqual(['10.0.0.1'])
  })

  test.each<[Manifest, readonly [boolean, boolean, boolean]]>([
    [{}, [true, true, false]],
    [{ ready: null }, [true, true, false]],
    [{ ready: false }, [false, false, false]],
    [{ ready: false, serving: true }, [false, true, false]],
    [{ ready: true, serving: false, terminating: true }, [true, false, true]],
  ])('conditions %j', (conditions, [ready, serving, terminating]) => {
    const value = parse({ ...slice('web-1'), endpoints: [{ addresses: ['10.0.0.1'], conditions }] })
    expect(value).toMatchObject({ endpoints: [{ state: { ready, serving, terminating } }] })
  })

  test.each([
    ['2026-01-01T00:00:01Z', Date.UTC(2026, 0, 1, 0, 0, 1)],
    ['2026-01-01T00:00:01.123456789Z', Date.UTC(2026, 0, 1, 0, 0, 1, 123)],
    ['soon', undefined],
  ])('what triggered its last change: %s', (stamp, expected) => {
    const annotations = { 'endpoints.kubernetes.io/last-change-trigger-time': stamp }
    const parsed = parse({ ...slice('web-1', {}), metadata: { name: 'web-1', namespace: 'default', annotations } })
    expect('kind' in parsed && parsed.triggered).toBe(expected)
  })

  test.each([
    ['1234567', 1_234_567],
    ['1e3', undefined],
    [undefined, undefined],
  ])('which write of the API server it is: %s', (resourceVersion, expected) => {
    const parsed = parse(slice('web-1', resourceVersion === undefined ? {} : { resourceVersion }))
    expect('kind' in parsed && parsed.resourceVersion).toBe(expected)
  })

  test('a port without number is none', () => {
    expect(read({ ports: [{ name: 'all' }, { port: 80 }] }).ports).toMatchObject([{ name: '', port: 80 }])
  })

  test('names outside have no endpoints here', () => {
    expect(parse({ ...slice('web-1'), addressType: 'FQDN', endpoints: [{ addresses: ['example.org'] }] })).toMatchObject({
      addressType: 'FQDN',
      endpoints: [],
    })
  })

  test.each([
    { 'service.kubernetes.io/headless': '' },
    { 'service.kubernetes.io/service-proxy-name': 'x' },
    { 'kubernetes.io/service-name': '' },
  ])('a slice with labels %j belongs to no service of ours', (labels) => {
    expect(read({ labels }).service).toBeUndefined()
    expect(read({ labels }).unserved).toBe('kubernetes.io/service-name' in labels ? undefined : 'web')
  })
})

describe('an endpoint is left out whose address', () => {
  test.each([
    ['x', 'must be an IP address'],
    ['fd00::1', 'must be of family IPv4'],
    ['127.0.0.1', 'must not be a loopback address'],
    ['169.254.0.1', 'must not be a link-local address'],
    ['0.0.0.0', 'must not be the unspecified address'],
    ['0.1.2.3', 'must not be an address of 0.0.0.0/8, which no host has'],
    ['224.1.2.3', 'must not be a multicast address'],
    ['255.255.255.255', 'must not be the broadcast address'],
  ])('is %s', (address, reason) => {
    const manifest = { addressType: 'IPv4', endpoints: [{ addresses: [address] }, { addresses: ['10.0.0.1'] }] }
    const parsed = parseObject(manifest, { kind: 'EndpointSlice', namespace: 'default', name: 'web-1' })
    const rejected = [{ path: 'endpoints[0].addresses[0]', reason }]
    expect(parsed).toMatchObject({ kind: 'ok', value: { endpoints: [{ addr: parseAddr('10.0.0.1') }] }, rejected })
  })
})

test('endpoints of one pod are known by its id, or by its name where there is none', () => {
  const [one, other] = [
    { kind: 'Pod', name: 'web', uid: '1' },
    { kind: 'Pod', name: 'web', uid: '2' },
  ]
  const targets = [one, one, other, { kind: 'Pod', name: 'web' }, { kind: 'Pod', name: 'web' }, undefined, { name: 7 }]
  const endpoints = targets.map((targetRef, at) => ({ addresses: [`10.0.0.${at + 1}`], ...(targetRef && { targetRef }) }))
  const value = parse({ ...slice('web-1'), endpoints })
  const pods = 'kind' in value ? value.endpoints.map(({ pod }) => pod) : []
  expect(pods.map((pod) => (pod === 0 ? 'unknown' : pods.indexOf(pod)))).toEqual([0, 0, 2, 3, 3, 'unknown', 'unknown'])
})

describe('is refused for', () => {
  test.each<[Manifest, string]>([
    [{}, 'addressType: is missing'],
    [{ addressType: 'IPv5' }, 'addressType: must be IPv4 or IPv6 or FQDN'],
    [{ addressType: 'IPv4', endpoints: [{}] }, 'endpoints[0].addresses: must have at least one'],
    [
      { addressType: 'IPv4', endpoints: [{ addresses: ['10.0.0.1'], conditions: { ready: 'yes' } }] },
      'endpoints[0].conditions.ready: must be true or false',
    ],
    [{ addressType: 'IPv4', ports: [{ port: 70000 }] }, 'ports[0].port: must be 1..65535'],
    [{ addressType: 'IPv4', endpoints: 'none' }, 'endpoints: must be a list'],
  ])('%j', (manifest, reason) => {
    expect(parse(manifest)).toEqual([reason])
  })
})
