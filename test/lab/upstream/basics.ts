// SPDX-License-Identifier: Apache-2.0
/** Services by their cluster address: endpoints, ports and services that come and go. Layer: test. */
import { expect, test } from 'vitest'
import { kinds, peers, type Cluster } from '../../../testkit/lab/cluster.ts'
import { addressOf, clusterObjects, EVICTED, FAMILIES, podObject, PROTOS, type SlicePort } from '../../../testkit/lab/manifests.ts'
import { BOTH_PROTOCOLS, type PortSpec, type TestService } from '../../../testkit/lab/test-service.ts'

const SHELLS = ['shell-a', 'shell-b', 'shell-c']

/** A port of both protocols. */
function both(port: number, targetPort: number, name = `p${port}`): PortSpec[] {
  return (['TCP', 'UDP'] as const).map((protocol) => ({ name: `${name}-${protocol.toLowerCase()}`, protocol, port, targetPort }))
}

/** The same in a slice. */
function slicePorts(ports: readonly PortSpec[], port: number): SlicePort[] {
  return ports.map(({ name, protocol }) => ({ name, protocol, port }))
}

/** Its cluster addresses with a port. */
function at(service: TestService, port: number): ReturnType<TestService['at']>[] {
  return FAMILIES.flatMap((family) => PROTOS.map((proto) => service.at(family, proto, port)))
}

export function endpointTests(cluster: Cluster): void {
  test('should serve a basic endpoint from pods', async () => {
    const service = cluster.service()
    for (const endpoints of [['a-1'], ['a-1', 'b-1'], ['b-1']]) {
      service.put({ endpoints })
      await cluster.reaches(SHELLS, service.everywhere, endpoints)
    }
    service.put({ endpoints: [] })
    await cluster.refuses(SHELLS, service.everywhere)
  })

  test('should serve multiport endpoints from pods', async () => {
    const service = cluster.service()
    const [first, second] = [both(80, 8080), both(81, 8081)]
    const slices = [
      { ports: slicePorts(first, 8080), endpoints: ['a-1'] },
      { ports: slicePorts(second, 8081), endpoints: ['b-1'] },
    ]
    service.put({ ports: [...first, ...second], slices: slices.slice(0, 1) })
    await cluster.reaches(SHELLS, at(service, 80), ['a-1'])
    await cluster.refuses(SHELLS, at(service, 81))
    service.put({ slices })
    for (const [port, pod, target] of [
      [80, 'a-1', ':8080'],
      [81, 'b-1', ':8081'],
    ] as const) {
      const answers = await cluster.reaches(SHELLS, at(service, port), [pod])
      expect(answers.filter((answer) => !('local' in answer && answer.local.endsWith(target)))).toEqual([])
    }
    service.put({ slices: slices.slice(1) })
    await cluster.refuses(SHELLS, at(service, 80))
    await cluster.reaches(SHELLS, at(service, 81), ['b-1'])
  })

  test('should be updated after adding or deleting ports', async () => {
    const service = cluster.service()
    service.put({ ports: both(80, 8080), endpoints: ['a-1'] })
    await cluster.reaches(SHELLS, at(service, 80), ['a-1'])
    service.put({ ports: [...both(80, 8080), ...both(81, 8081)] })
    await cluster.reaches(SHELLS, [...at(service, 80), ...at(service, 81)], ['a-1'])
    // another name, another number
    service.put({ ports: [...both(80, 8080), ...both(82, 8082, 'renamed')] })
    await cluster.reaches(SHELLS, at(service, 82), ['a-1'])
    await cluster.fails(SHELLS, at(service, 81))
    service.put({ ports: both(82, 8082, 'renamed') })
    await cluster.fails(SHELLS, at(service, 80))
    await cluster.reaches(SHELLS, at(service, 82), ['a-1'])
  })

  test('should preserve source pod IP for traffic thru service cluster IP [LinuxOnly]', async () => {
    const service = cluster.service()
    service.put({ endpoints: ['b-1'] })
    for (const from of SHELLS)
      for (const family of FAMILIES)
        for (const proto of PROTOS)
          expect(peers(await cluster.reaches(from, service.at(family, proto), ['b-1']))).toEqual([addressOf(from, family)])
  })

  test('should allow pods to hairpin back to themselves through services', async () => {
    const service = cluster.service()
    service.put({ endpoints: ['a-1'] })
    await cluster.reaches('a-1', service.everywhere, ['a-1'])
    service.put({ type: 'NodePort' })
    await cluster.reaches('a-1', [...service.onEvery('a'), ...service.onEvery('b')], ['a-1'])
  })

  test('should be rejected when no endpoints exist', async () => {
    const service = cluster.service()
    service.put({ type: 'NodePort', endpoints: [] })
    await cluster.refuses([...SHELLS, 'node/a', 'a-1'], service.everywhere)
    await cluster.refuses(['client', 'shell-b'], [...service.onEvery('a'), ...service.onEvery('b')])
  })

  test('should be rejected for evicted pods (no endpoints exist)', async () => {
    const service = cluster.service()
    service.put({ endpoints: [EVICTED] })
    await cluster.reaches('shell-a', service.everywhere, [EVICTED])
    const evicted = podObject(EVICTED, { status: { phase: 'Failed', reason: 'Evicted' } })
    cluster.put('cluster', [...clusterObjects().filter((object) => !isPod(object, EVICTED)), evicted])
    service.put({ endpoints: [] })
    await cluster.refuses([...SHELLS, 'node/c'], service.everywhere)
    cluster.put('cluster', clusterObjects())
  })

  test('should support named targetPorts that resolve to different ports on different endpoints', async () => {
    const service = cluster.service()
    const named = BOTH_PROTOCOLS.map((port) => ({ ...port, targetPort: 'web' }))
    const slices = [
      { ports: slicePorts(named, 8080), endpoints: ['a-1'] },
      { ports: slicePorts(named, 8081), endpoints: ['b-1'] },
      { ports: slicePorts(named, 8082), endpoints: ['c-1'] },
    ]
    service.put({ type: 'NodePort', ports: named, slices })
    const answers = await cluster.reaches(['shell-a', 'client'], [...service.onEvery('a'), ...service.onEvery('b')], ['a-1', 'b-1', 'c-1'])
    const ends = answers.flatMap((answer) => ('pod' in answer ? [`${answer.pod} ${/\d+$/.exec(answer.local)?.[0] ?? ''}`] : []))
    expect([...new Set(ends)].sort()).toEqual(['a-1 8080', 'b-1 8081', 'c-1 8082'])
    await cluster.reaches(SHELLS, service.everywhere, ['a-1', 'b-1', 'c-1'])
  })
}

export function lifeTests(cluster: Cluster): void {
  test('should be able to up and down services', async () => {
    const [first, second, third] = [cluster.service(), cluster.service(), cluster.service()]
    const endpoints = ['a-1', 'b-1', 'c-1']
    first.put({ endpoints })
    second.put({ endpoints })
    await cluster.reaches(['shell-a', 'node/b'], [...first.everywhere, ...second.everywhere], endpoints)
    first.remove()
    await cluster.fails(['shell-a', 'node/b'], first.everywhere)
    await cluster.reaches(['shell-a', 'node/b'], second.everywhere, endpoints)
    third.put({ endpoints })
    await cluster.reaches(['shell-a', 'node/b'], [...second.everywhere, ...third.everywhere], endpoints)
    await cluster.fails(['shell-a', 'node/b'], first.everywhere)
  })

  test('should work after the service has been recreated', async () => {
    const service = cluster.service()
    service.put({ endpoints: ['b-1'] })
    await cluster.reaches(SHELLS, service.everywhere, ['b-1'])
    service.remove()
    await cluster.fails(SHELLS, service.everywhere)
    service.put({})
    await cluster.reaches(SHELLS, service.everywhere, ['b-1'])
  })

  test('should work after restarting kube-proxy [Disruptive]', async () => {
    const [first, second] = [cluster.service(), cluster.service()]
    first.put({ type: 'NodePort', endpoints: ['a-1', 'b-1'] })
    await cluster.reaches(['shell-a', 'node/a'], first.everywhere, ['a-1', 'b-1'])
    await cluster.lab.agents.stop('a', 'SIGKILL')
    second.put({ type: 'NodePort', endpoints: ['b-1', 'c-1'] })
    await cluster.reaches(['shell-a', 'node/a'], first.everywhere, ['a-1', 'b-1'])
    await cluster.reaches('client', first.onEvery('a'), ['a-1', 'b-1'])
    await cluster.lab.agents.start('a')
    await cluster.lab.agents.waitReady('a')
    await cluster.reaches(['shell-a', 'node/a'], first.everywhere, ['a-1', 'b-1'])
    await cluster.reaches(['shell-a', 'node/a'], second.everywhere, ['b-1', 'c-1'])
    await cluster.reaches('client', [...first.onEvery('a')], ['a-1', 'b-1'])
    await cluster.reaches('client', [...second.onEvery('a')], ['b-1', 'c-1'])
  })

  for (const [name, label] of [
    ['should implement service.kubernetes.io/service-proxy-name', 'service.kubernetes.io/service-proxy-name'],
    ['should implement service.kubernetes.io/headless', 'service.kubernetes.io/headless'],
  ] as const)
    test(name, async () => {
      const [plain, service] = [cluster.service(), cluster.service()]
      plain.put({ endpoints: ['a-1'] })
      service.put({ endpoints: ['a-1'], labels: { [label]: 'other' } })
      await cluster.reaches(SHELLS, plain.everywhere, ['a-1'])
      await cluster.fails(SHELLS, service.everywhere)
      service.put({ labels: {} })
      await cluster.reaches(SHELLS, service.everywhere, ['a-1'])
      service.put({ labels: { [label]: 'other' } })
      await cluster.fails(SHELLS, service.everywhere)
      await cluster.reaches(SHELLS, plain.everywhere, ['a-1'])
    })
}

/** The switches of publishNotReadyAddresses. */
export function notReadyTests(cluster: Cluster): void {
  const gone = { pod: 'b-1', ready: false, serving: false, terminating: true }

  test('should create endpoints for unready pods', async () => {
    const service = cluster.service()
    service.put({ endpoints: [{ pod: 'b-1', ready: false }], more: { publishNotReadyAddresses: true } })
    await cluster.reaches(SHELLS, service.everywhere, ['b-1'])
    service.put({ more: { publishNotReadyAddresses: false } })
    await cluster.refuses(SHELLS, service.everywhere)
    service.put({ more: { publishNotReadyAddresses: true } })
    await cluster.reaches(SHELLS, service.everywhere, ['b-1'])
    service.put({ endpoints: [] })
    await cluster.refuses(SHELLS, service.everywhere)
  })

  test('should be able to connect to terminating and unready endpoints if PublishNotReadyAddresses is true', async () => {
    const service = cluster.service()
    service.put({ type: 'NodePort', more: { publishNotReadyAddresses: true } })
    // as the controller writes it, and without its help
    for (const endpoint of [{ ...gone, ready: true }, gone]) {
      service.put({ endpoints: [endpoint] })
      await cluster.reaches(SHELLS, service.everywhere, ['b-1'])
      await cluster.reaches(['client', 'shell-c'], [...service.onEvery('a'), ...service.onEvery('b')], ['b-1'])
    }
  })

  test('should not be able to connect to terminating and unready endpoints if PublishNotReadyAddresses is false', async () => {
    const service = cluster.service()
    service.put({ type: 'NodePort', endpoints: [{ pod: 'b-1' }] })
    await cluster.reaches(SHELLS, service.everywhere, ['b-1'])
    service.put({ endpoints: [gone] })
    await cluster.refuses(SHELLS, service.everywhere)
    await cluster.refuses(['client', 'shell-c'], [...service.onEvery('a'), ...service.onEvery('b')])
    expect(kinds(await cluster.ask('shell-b', service.at(4), { count: 8 }))).toEqual(['ECONNREFUSED'])
  })
}

function isPod(object: object, name: string): boolean {
  return 'kind' in object && object.kind === 'Pod' && 'metadata' in object && JSON.stringify(object.metadata).includes(`"${name}"`)
}
