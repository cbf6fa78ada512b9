// SPDX-License-Identifier: Apache-2.0
/** Services in, rows out. Layer: test. */
import { describe, expect, test } from 'vitest'
import { listId } from '#agent/compile/services/list-ids.ts'
import { slice } from '../../../support/build.ts'
import type { ServiceSpec } from '../../../support/build.ts'
import { compile, compileAs, context } from '../service-rows.ts'

describe('a cluster address', () => {
  test('leads to ready endpoints, sorted, each with its node', () => {
    const endpoints = [
      { addr: '10.0.1.9', node: 'n2' },
      { addr: '10.0.1.10', node: 'n3' },
      { addr: '10.0.0.1', node: 'n1' },
      { addr: '10.0.0.2', ready: false, node: 'n1' },
      { addr: '10.0.3.1', node: 'stranger' },
    ]
    expect(compile({}, slice('web-1', { endpoints }))).toEqual([
      '10.96.0.1:80/TCP -> #1 of 4',
      '#1[0] 10.0.0.1:8080',
      '#1[1] 10.0.1.9:8080 at 192.168.0.2',
      '#1[2] 10.0.1.10:8080 at 192.168.0.3',
      '#1[3] 10.0.3.1:8080',
      '#1 own[0] 10.0.0.1:8080',
    ])
  })

  test('without endpoint refuses', () => {
    expect(compile({})).toEqual(['10.96.0.1:80/TCP -> #1 of 0'])
    expect(compile({}, slice('web-1', { endpoints: [{ addr: '10.0.0.1', ready: false }] }))).toEqual(['10.96.0.1:80/TCP -> #1 of 0'])
  })

  test('leads to endpoints that are not ready where the service says so', () => {
    expect(
      compile({ spec: { publishNotReadyAddresses: true } }, slice('web-1', { endpoints: [{ addr: '10.0.0.1', ready: false }] })),
    ).toEqual(['10.96.0.1:80/TCP -> #1 of 1', '#1[0] 10.0.0.1:8080'])
  })

  test('has its own endpoints for each port and protocol', () => {
    const ports = [
      { name: 'http', port: 80 },
      { name: 'dns', port: 53, protocol: 'UDP' },
      { name: 'dns-tcp', port: 53 },
    ]
    const lines = compile(
      { ports },
      slice('web-1', {
        ports: [
          { name: 'http', port: 8080 },
          { name: 'dns', port: 5353, protocol: 'UDP' },
          { name: 'dns-tcp', port: 5353, protocol: 'UDP' },
        ],
        endpoints: ['10.0.0.1'],
      }),
    )
    expect(lines.filter((line) => line.includes('->'))).toEqual([
      '10.96.0.1:53/TCP -> #1 of 0',
      '10.96.0.1:53/UDP -> #2 of 1',
      '10.96.0.1:80/TCP -> #3 of 1',
    ])
    expect(lines.filter((line) => line.includes('['))).toEqual(expect.arrayContaining(['#2[0] 10.0.0.1:5353', '#3[0] 10.0.0.1:8080']))
    // the UDP port's backend is one that flows stay with as well
    expect(lines).toHaveLength(6)
  })

  test('takes each endpoint once, from all slices', () => {
    const one = slice('web-1', { endpoints: [{ addr: '10.0.0.1', ready: false }, '10.0.0.2'] })
    const two = slice('web-2', { ports: [{ port: 8080 }], endpoints: ['10.0.0.1', '10.0.0.2', '10.0.0.3'] })
    const three = slice('web-3', { ports: [{ port: 9090 }], endpoints: ['10.0.0.1'] })
    expect(compile({}, one, two, three)).toEqual([
      '10.96.0.1:80/TCP -> #1 of 4',
      '#1[0] 10.0.0.1:8080',
      '#1[1] 10.0.0.1:9090',
      '#1[2] 10.0.0.2:8080',
      '#1[3] 10.0.0.3:8080',
    ])
  })
})

describe('both families', () => {
  const slices = [
    slice('web-4', { endpoints: [{ addr: '10.0.0.1', node: 'n2' }] }),
    slice('web-6', {
      endpoints: [
        { addr: 'fd02::1', node: 'n2' },
        { addr: 'fd02::2', node: 'n3' },
      ],
    }),
  ]

  test('are served apart', () => {
    expect(compile({ clusterIPs: ['10.96.0.1', 'fd00::1'], ports: [{ port: 80, nodePort: 30080 }] }, ...slices)).toEqual([
      '[::]:30080/TCP -> #1 of 2 node-port external',
      '0.0.0.0:30080/TCP -> #2 of 1 node-port external',
      '10.96.0.1:80/TCP -> #2 of 1',
      '[fd00::1]:80/TCP -> #1 of 2',
      ...['#1[0] [fd02::1]:8080 at fd01::2', '#1[1] [fd02::2]:8080', '#2[0] 10.0.0.1:8080 at 192.168.0.2'].sort(),
    ])
  })

  test('but only those of the service', () => {
    expect(compile({ clusterIPs: ['fd00::1'], spec: { externalIPs: ['198.51.100.1', '2001:db8::1'] } }, ...slices)).toEqual([
      '[2001:db8::1]:80/TCP -> #1 of 2 external',
      '[fd00::1]:80/TCP -> #1 of 2',
      '#1[0] [fd02::1]:8080 at fd01::2',
      '#1[1] [fd02::2]:8080',
    ])
  })
})

describe('addresses from outside', () => {
  test('node port, external and load balancer', () => {
    const of = {
      type: 'LoadBalancer',
      ports: [{ port: 80, nodePort: 30080 }],
      ingress: [{ ip: '192.0.2.1' }, { ip: '198.51.100.1' }],
      spec: { externalIPs: ['198.51.100.1', '10.96.0.1'] },
    }
    expect(compile(of, slice('web-1', { endpoints: ['10.0.0.1'] }))).toEqual([
      '0.0.0.0:30080/TCP -> #1 of 1 node-port external',
      '10.96.0.1:80/TCP -> #1 of 1',
      '192.0.2.1:80/TCP -> #1 of 1 external',
      '198.51.100.1:80/TCP -> #1 of 1 external',
      '#1[0] 10.0.0.1:8080',
    ])
  })

  test('every one of them but node ports is known as a service’s: cluster addresses are of services alone, the others may be hosts’', () => {
    const of = {
      ports: [{ port: 80, nodePort: 30080 }],
      ingress: [{ ip: '192.0.2.1' }],
      spec: { externalIPs: ['192.0.2.1', '198.51.100.1'] },
    }
    const lines = compileAs(context, of).filter((line) => / service( external)?$/.test(line))
    expect(lines).toEqual(['10.96.0.1 service', '192.0.2.1 service external', '198.51.100.1 service external'])
  })

  test('a cluster address that the service also names as an external one stays a cluster address', () => {
    const lines = compileAs(context, { spec: { externalIPs: ['10.96.0.1'] }, ingress: [{ ip: '10.96.0.1' }] })
    expect(lines.filter((line) => / service( external)?$/.test(line))).toEqual(['10.96.0.1 service'])
  })

  test('a load balancer that is no VIP is left alone', () => {
    expect(compile({ type: 'LoadBalancer', ingress: [{ ip: '192.0.2.1', ipMode: 'Proxy' }] })).toEqual(['10.96.0.1:80/TCP -> #1 of 0'])
  })

  test('a node port needs no cluster address', () => {
    expect(compile({ clusterIPs: [], ports: [{ port: 80, nodePort: 30080 }] })).toEqual(['0.0.0.0:30080/TCP -> #1 of 0 node-port external'])
    expect(compile({ clusterIPs: [], ports: [{ port: 80 }] }, slice('web-1', { endpoints: ['10.0.0.1'] }))).toEqual([])
  })
})

test.each<[string, ServiceSpec]>([
  ['headless', { clusterIPs: ['None'] }],
  ['headless by label', { labels: { 'service.kubernetes.io/headless': '' } }],
  ['another proxy’s', { labels: { 'service.kubernetes.io/service-proxy-name': 'other' } }],
  ['excluded by annotation', { annotations: { 'netplane.io/nat-exclude-service': 'true' } }],
  ['names outside', { type: 'ExternalName', clusterIPs: [], ports: [] }],
])('left alone: %s', (_, of) => {
  expect(compile(of, slice('web-1', { endpoints: ['10.0.0.1'] }))).toEqual([])
})

test.each([
  ['another service\u2019s list', 'prod/web:http', 'evil/x:3e7w7624aonfffhr4v8xsbotv04bymsh2lks37tg709emb014e880elhyap3'],
  ['the API server\u2019s', 'default/kubernetes:https', 'aaa/x:1qotykzmx6ur2bgk07rg9wu2651xg17qc3jiajbx7vmxvwo2wfjidigrhxcz'],
])('no port can be named so that its list has the id of %s', (_, ...texts) => {
  const ids = texts.map((text) => {
    const [namespace = '', name = '', port = ''] = text.split(/[/:]/)
    return listId({ namespace, name, port, family: 'IPv4', local: false })
  })
  expect(new Set(ids).size).toBe(2)
})

test('ids depend on namespace, name, port, family and policy alone', () => {
  const id = listId({ namespace: 'default', name: 'web', port: 'http', family: 'IPv4', local: false })
  expect(id).toMatch(/^[0-9a-f]{16}$/)
  expect(id).toBe('7f26b5a65bbdc498')
  expect(
    new Set([
      id,
      listId({ namespace: 'default', name: 'web', port: 'http', family: 'IPv4', local: true }),
      listId({ namespace: 'default', name: 'web', port: 'http', family: 'IPv6', local: false }),
      listId({ namespace: 'default', name: 'web', port: '', family: 'IPv4', local: false }),
    ]).size,
  ).toBe(4)
})
