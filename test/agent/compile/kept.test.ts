// SPDX-License-Identifier: Apache-2.0
/** What the compiler knows of services besides their rows: last endpoints of the API server, health checks.
 * Layer: test. */
import { describe, expect, test } from 'vitest'
import { service, slice } from '../../support/build.ts'
import type { Manifest } from '../../support/build.ts'
import { showChange } from '../../support/show.ts'
import { cluster, World } from './world.ts'

describe('the API server’s service', () => {
  const apiServer = service('kubernetes', { ports: [{ port: 443 }] })
  const count = (world: World): string =>
    showChange({ ...world.compile(), node: undefined })
      .split('\n')[1]
      ?.trim() ?? ''

  test('keeps its last endpoints until there are others', () => {
    const world = new World(apiServer, slice('kubernetes', { service: 'kubernetes', endpoints: ['192.168.0.1'] }))
    world.compile()
    world.put(slice('kubernetes', { service: 'kubernetes', endpoints: [] }))
    expect(count(world)).toBe('10.96.0.1:443/TCP -> #1 of 1')
    world.put(slice('kubernetes', { service: 'kubernetes', endpoints: ['192.168.0.2', '192.168.0.3'] }))
    expect(count(world)).toBe('10.96.0.1:443/TCP -> #1 of 2')
    world.drop(slice('kubernetes', { service: 'kubernetes' }))
    expect(count(world)).toBe('10.96.0.1:443/TCP -> #1 of 2')
  })

  test('has none before it had one; others lose theirs', () => {
    const world = new World(apiServer, ...cluster)
    expect(showChange(world.compile())).toContain('10.96.0.1:443/TCP -> #1 of 0')
    world.drop(slice('web-1'))
    expect(count(world)).toBe('10.96.0.1:80/TCP -> #1 of 0')
  })
})

test('health checks are counted with the services and change with them alone', () => {
  const spec = { externalTrafficPolicy: 'Local', healthCheckNodePort: 32000 }
  const local = (name: string, of: object = spec): Manifest => service(name, { type: 'LoadBalancer', spec: { ...of } })
  const world = new World(...cluster, local('web'), local('plain', { ...spec, externalTrafficPolicy: 'Cluster' }))
  const checks = (): unknown => world.compile().node?.healthChecks
  expect(checks()).toEqual([{ namespace: 'default', name: 'web', port: 32000, localReady: 1 }])
  const endpoint = { addr: '10.0.1.1', node: 'n1' }
  world.put(slice('web-2', { endpoints: [endpoint, { addr: '10.0.1.2', node: 'n1' }] }))
  expect(checks(), 'each address once').toMatchObject([{ localReady: 2 }])
  world.put(
    slice('web-2', {
      endpoints: [
        endpoint,
        { addr: '10.0.1.3', node: 'n2' },
        { addr: '10.0.1.4', node: 'n1', ready: false, serving: true, terminating: true },
      ],
    }),
  )
  expect(checks(), 'neither elsewhere nor going').toMatchObject([{ localReady: 1 }])
  world.put(slice('web-2', { endpoints: [endpoint] }))
  expect(checks(), 'nothing new').toBeUndefined()
  world.put(slice('web-3', { endpoints: [{ ...endpoint, ready: false }], resourceVersion: '7' }))
  expect(checks(), 'of two slices the newer').toMatchObject([{ localReady: 0 }])
  world.drop(service('web'))
  expect(checks()).toEqual([])
})

test('a change of mode changes each frontend and the health checks, and nothing else', () => {
  const spec = { externalTrafficPolicy: 'Local', healthCheckNodePort: 32000 }
  const world = new World(...cluster, service('local', { type: 'LoadBalancer', ports: [{ port: 80, nodePort: 30080 }], spec }))
  const before = showChange(world.compile()).split('\n')
  const { services } = world.input.settings
  world.input = { ...world.input, settings: { ...world.input.settings, services: { ...services, mode: 'Standard' } } }
  const changed = world.compile()
  const after = showChange(changed).split('\n')
  const frontends = (lines: readonly string[]): string[] => lines.filter((line) => line.includes(' -> '))
  expect(frontends(after).every((line) => line.includes(' pods'))).toBe(true)
  expect(frontends(after).map((line) => line.replace(' pods', ''))).toEqual(frontends(before))
  expect(frontends(before)).toHaveLength(3)
  expect(changed.node?.healthChecks).toEqual([])
})
