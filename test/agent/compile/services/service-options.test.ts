// SPDX-License-Identifier: Apache-2.0
/** What services may ask for besides an address: source ranges, traffic policies, affinity, Maglev. Layer: test. */
import { describe, expect, test } from 'vitest'
import { parseCidr } from '#lib/base/ip.ts'
import type { ServiceContext } from '#agent/compile/services/compile-service.ts'
import { slice } from '../../../support/build.ts'
import type { EndpointSpec, Manifest, ServiceSpec } from '../../../support/build.ts'
import { compile, compileAs, context } from '../service-rows.ts'

describe('source ranges', () => {
  const balanced = (ranges: readonly string[], spec: Manifest = {}): ServiceSpec => ({
    type: 'LoadBalancer',
    ports: [{ port: 80, nodePort: 30080 }],
    ingress: [{ ip: '192.0.2.1' }],
    spec: { loadBalancerSourceRanges: ranges, ...spec },
  })

  test('are for the load balancer’s addresses alone', () => {
    expect(compile(balanced(['203.0.113.0/24', ' 10.0.0.0/8', '10.0.0.0/8'], { externalIPs: ['198.51.100.1'] }))).toEqual([
      '0.0.0.0:30080/TCP -> #1 of 0 node-port external',
      '10.96.0.1:80/TCP -> #1 of 0',
      '192.0.2.1:80/TCP -> #1 of 0 external ranges',
      '198.51.100.1:80/TCP -> #1 of 0 external',
      '#1 range 10.0.0.0/8',
      '#1 range 203.0.113.0/24',
    ])
  })

  test('hold for an address that is listed as an external one as well', () => {
    expect(compile(balanced(['203.0.113.0/24'], { externalIPs: ['192.0.2.1'] }))).toContain('192.0.2.1:80/TCP -> #1 of 0 external ranges')
  })

  test('with this node among them, the addresses themselves may be sources', () => {
    expect(compile(balanced(['192.168.0.0/24'])).filter((line) => line.includes('range '))).toEqual([
      '#1 range 192.0.2.1/32',
      '#1 range 192.168.0.0/24',
    ])
  })

  test('of the other family restrict nothing; unreadable ones let no client in', () => {
    expect(compile(balanced(['fd00::/8']))).toContain('192.0.2.1:80/TCP -> #1 of 0 external')
    expect(compile(balanced(['10.0.0.0']))).toEqual([
      '0.0.0.0:30080/TCP -> #1 of 0 node-port external',
      '10.96.0.1:80/TCP -> #1 of 0',
      '192.0.2.1:80/TCP -> #1 of 0 external ranges',
    ])
  })
})

describe('traffic policies', () => {
  const endpoints = [
    { addr: '10.0.0.1', node: 'n1' },
    { addr: '10.0.0.2', node: 'n2' },
  ]
  const elsewhere = [{ addr: '10.0.0.2', node: 'n2' }]
  const reached = { type: 'LoadBalancer', ports: [{ port: 80, nodePort: 30080 }], ingress: [{ ip: '192.0.2.1' }] }
  const lines = (spec: Manifest, of: readonly EndpointSpec[]): string[] => compile({ ...reached, spec }, slice('web-1', { endpoints: of }))

  test('external Local: outside to this node’s endpoints, inside to all of them', () => {
    expect(lines({ externalTrafficPolicy: 'Local' }, endpoints).sort()).toEqual([
      ...['#1 own[0] 10.0.0.1:8080', '#1[0] 10.0.0.1:8080', '#1[1] 10.0.0.2:8080 at 192.168.0.2', '#2[0] 10.0.0.1:8080'],
      '0.0.0.0:30080/TCP -> #1 of 2, outside #2 of 1 node-port external outside-local',
      '10.96.0.1:80/TCP -> #1 of 2',
      '192.0.2.1:80/TCP -> #1 of 2, outside #2 of 1 external outside-local',
    ])
  })

  test('internal Local: the cluster address to this node’s endpoints', () => {
    expect(lines({ internalTrafficPolicy: 'Local' }, endpoints).slice(0, 3)).toEqual([
      '0.0.0.0:30080/TCP -> #1 of 2 node-port external',
      '10.96.0.1:80/TCP -> #2 of 1 inside-local outside-local',
      '192.0.2.1:80/TCP -> #1 of 2 external',
    ])
  })

  test('Local with endpoints elsewhere only: silence; with none at all: refusal', () => {
    const both = { externalTrafficPolicy: 'Local', internalTrafficPolicy: 'Local' }
    expect(lines(both, elsewhere)).toEqual([
      '0.0.0.0:30080/TCP -> #1 of 1, outside #2 of 0 node-port external outside-local',
      '10.96.0.1:80/TCP -> #2 of 0 inside-local outside-local',
      '192.0.2.1:80/TCP -> #1 of 1, outside #2 of 0 external outside-local',
      '#1[0] 10.0.0.2:8080 at 192.168.0.2',
    ])
    expect(lines(both, [])).toEqual([
      '0.0.0.0:30080/TCP -> #1 of 0, outside #2 of 0 node-port external',
      '10.96.0.1:80/TCP -> #2 of 0',
      '192.0.2.1:80/TCP -> #1 of 0, outside #2 of 0 external',
    ])
  })

  test('a backend list that no frontend uses is not written', () => {
    expect(compile({ spec: { internalTrafficPolicy: 'Local' } }, slice('web-1', { endpoints }))).toEqual([
      '10.96.0.1:80/TCP -> #1 of 1 inside-local outside-local',
      '#1[0] 10.0.0.1:8080',
    ])
  })
})

describe('backends that flows stay with', () => {
  const endpoints = [
    { addr: '10.0.0.1', node: 'n1' },
    { addr: '10.0.0.2', node: 'n2' },
    { addr: '10.0.0.3', node: 'n1', ready: false, serving: true, terminating: true },
    { addr: '10.0.0.4', node: 'n1', ready: false, serving: false, terminating: true },
  ]
  const udp = slice('web-1', { ports: [{ port: 53, protocol: 'UDP' }], endpoints })

  test('of a UDP port, in each of its lists', () => {
    const spec = { externalTrafficPolicy: 'Local' }
    expect(compile({ ports: [{ port: 53, protocol: 'UDP', nodePort: 30053 }], spec }, udp).sort()).toEqual([
      ...[
        '#1 live 10.0.0.3:53',
        '#1 live[0] 10.0.0.1:53',
        '#1 live[1] 10.0.0.2:53',
        '#1 own[0] 10.0.0.1:53',
        '#1 own[1] 10.0.0.3:53',
        '#1[0] 10.0.0.1:53',
        '#1[1] 10.0.0.2:53 at 192.168.0.2',
      ],
      ...['#2 live 10.0.0.3:53', '#2 live[0] 10.0.0.1:53', '#2[0] 10.0.0.1:53'],
      '0.0.0.0:30053/UDP -> #1 of 2, outside #2 of 1 node-port external outside-local',
      '10.96.0.1:53/UDP -> #1 of 2',
    ])
  })

  test('of a service with affinity', () => {
    const spec = { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 125 } } }
    expect(compile({ spec }, slice('web-1', { endpoints: ['10.0.0.1'] }))).toEqual([
      '10.96.0.1:80/TCP -> #1 of 1 125s',
      '#1[0] 10.0.0.1:8080',
      '#1 live[0] 10.0.0.1:8080',
    ])
  })
})

describe('this node’s backends, whose flows other nodes may have begun', () => {
  test('are there although new flows are not given to them from here', () => {
    const endpoints = [
      { addr: '10.0.0.1', node: 'n1', forNodes: ['n2'] },
      { addr: '10.0.0.2', node: 'n2', forNodes: ['n1'] },
      { addr: '10.0.0.3', node: 'n1', ready: false, serving: true, terminating: true },
      { addr: '10.0.0.4', node: 'n1', ready: false, serving: false, terminating: true },
    ]
    expect(compile({}, slice('web-1', { endpoints }))).toEqual([
      '10.96.0.1:80/TCP -> #1 of 1',
      '#1[0] 10.0.0.2:8080 at 192.168.0.2',
      '#1 own[0] 10.0.0.1:8080',
      '#1 own[1] 10.0.0.3:8080',
    ])
  })

  test('count once where a service may have so many', () => {
    const most = { frontends: 9, backends: 2, live: 9, maglev: 9, ranges: 9, endpoints: 9 }
    const of = (...addrs: readonly string[]) => slice('web-1', { endpoints: addrs.map((addr) => ({ addr, node: 'n1' })) })
    expect(compileAs({ ...context, most }, {}, of('10.0.0.1', '10.0.0.2'))).not.toEqual([])
    expect(compileAs({ ...context, most }, {}, of('10.0.0.1', '10.0.0.2', '10.0.0.3'))).toEqual([])
  })
})

describe('Maglev', () => {
  const slices = slice('web-1', { endpoints: ['10.0.0.1', '10.0.0.2', '10.0.0.3'] })
  const nodePort: ServiceSpec = { ports: [{ port: 80, nodePort: 30080 }] }
  const maglev: ServiceContext = { ...context, selection: 'Maglev' }
  const annotated = (word: string): ServiceSpec => ({ ...nodePort, annotations: { 'netplane.io/backend-selection': word } })

  test('is for flows from outside', () => {
    const [first, second, ...rest] = compileAs(maglev, nodePort, slices)
    expect([first, second]).toEqual(['0.0.0.0:30080/TCP -> #1 of 3 node-port external maglev', '10.96.0.1:80/TCP -> #1 of 3'])
    expect(rest.filter((line) => line.includes('maglev'))).toEqual(['#1 maglev of 3'])
  })

  test('the service’s own word goes first', () => {
    expect(compileAs(maglev, annotated('Random'), slices).some((line) => line.includes('maglev'))).toBe(false)
    expect(compile(annotated('Maglev'), slices)).toContain('#1 maglev of 3')
    expect(
      compile(annotated('maglev'), slices).some((line) => line.includes('maglev')),
      'refused',
    ).toBe(false)
  })

  test('needs a backend, and a frontend for clients outside', () => {
    expect(compileAs(maglev, nodePort).some((line) => line.includes('maglev'))).toBe(false)
    expect(compileAs(maglev, {}, slices).some((line) => line.includes('maglev'))).toBe(false)
  })
})

test('addresses that the settings leave to others', () => {
  const here = { ...context, excluded: [parseCidr('10.96.0.0/24')] }
  expect(compileAs(here, { ports: [{ port: 80, nodePort: 30080 }] })).toEqual(['0.0.0.0:30080/TCP -> #1 of 0 node-port external'])
  expect(compileAs(here, {}, slice('web-1', { endpoints: ['10.0.0.1'] }))).toEqual([])
})

test('in Standard mode a UDP service that leads to the port of the tunnel is told apart', () => {
  const lines = (mode: 'BPF' | 'Standard', port: number): string[] =>
    compileAs(
      { ...context, mode },
      { ports: [{ port: 53, protocol: 'UDP' }] },
      slice('web-1', { ports: [{ port, protocol: 'UDP' }], endpoints: [{ addr: '192.168.0.2', node: 'n2' }] }),
    ).filter((line) => line.includes(' -> '))
  expect(lines('Standard', 4789)).toEqual([expect.stringMatching(/ pods tunnel$/)])
  expect(lines('Standard', 5353)).toEqual([expect.stringMatching(/ pods$/)])
  expect(lines('BPF', 4789)).toEqual([expect.not.stringMatching(/pods|tunnel/)])
})
