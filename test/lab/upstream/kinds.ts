// SPDX-License-Identifier: Apache-2.0
/** Kinds of services: node ports, external addresses, live changes from one kind to another. Layer: test. */
import { expect, test } from 'vitest'
import type { Cluster } from '../../../testkit/lab/cluster.ts'
import { NODES } from '../../../testkit/lab/manifests.ts'
import { BOTH_PROTOCOLS, type TestService } from '../../../testkit/lab/test-service.ts'

const SHELLS = ['shell-a', 'shell-b', 'shell-c']
const HOSTS = NODES.map((node) => `node/${node}`)

function onAll(service: TestService): ReturnType<TestService['onEvery']> {
  return NODES.flatMap((node) => service.onEvery(node))
}

export function kindTests(cluster: Cluster): void {
  test('should be able to create a functioning NodePort service', async () => {
    const service = cluster.service()
    service.put({ type: 'NodePort', endpoints: ['a-1', 'b-1'] })
    await cluster.reaches([...SHELLS, ...HOSTS], service.everywhere, ['a-1', 'b-1'])
    await cluster.reaches(['client', 'far', ...SHELLS], onAll(service), ['a-1', 'b-1'])
    await cluster.reaches(HOSTS, onAll(service), ['a-1', 'b-1'])
  })

  test('should be possible to connect to a service via ExternalIP when the external IP is not assigned to a node', async () => {
    const service = cluster.service()
    const addresses = [service.outer(4), service.outer(6)]
    service.put({ endpoints: ['a-1', 'b-1'], more: { externalIPs: addresses.map(({ address }) => address) } })
    const to = addresses.flatMap((endpoint) => (['tcp', 'udp'] as const).map((proto) => ({ ...endpoint, proto })))
    await cluster.reaches([...SHELLS, 'client'], to, ['a-1', 'b-1'])
  })

  test('should be able to update service type to NodePort listening on same port number but different protocols', async () => {
    const service = cluster.service()
    service.put({ ports: BOTH_PROTOCOLS.slice(0, 1), endpoints: ['a-1', 'b-1'] })
    await cluster.reaches('shell-a', service.at(4, 'tcp'), ['a-1', 'b-1'])
    await cluster.fails('shell-a', service.at(4, 'udp'))
    // one number for both
    service.put({ type: 'NodePort', ports: BOTH_PROTOCOLS })
    await cluster.reaches(['shell-a', 'client'], onAll(service), ['a-1', 'b-1'])
    await cluster.reaches('shell-a', service.everywhere, ['a-1', 'b-1'])
    // a number each
    const udp = service.nodePort + 5
    service.put({ ports: BOTH_PROTOCOLS.map((port) => (port.protocol === 'UDP' ? { ...port, nodePort: udp } : port)) })
    await cluster.reaches(
      ['shell-a', 'client'],
      [4, 6].map((family) => ({ ...service.on('b', family === 4 ? 4 : 6, 'udp'), port: udp })),
      ['a-1', 'b-1'],
    )
    await cluster.reaches(['shell-a', 'client'], [service.on('b', 4), service.on('b', 6)], ['a-1', 'b-1'])
  })

  test('should be able to change the type from ExternalName to ClusterIP', async () => {
    const service = cluster.service()
    service.put({ type: 'ExternalName', endpoints: ['a-1', 'b-1'] })
    await cluster.fails('shell-a', service.everywhere)
    service.put({ type: 'ClusterIP' })
    await cluster.reaches(SHELLS, service.everywhere, ['a-1', 'b-1'])
  })

  test('should be able to change the type from ExternalName to NodePort', async () => {
    const service = cluster.service()
    service.put({ type: 'ExternalName', endpoints: ['a-1', 'b-1'] })
    await cluster.refuses('client', onAll(service))
    service.put({ type: 'NodePort' })
    await cluster.reaches([...SHELLS, 'client'], onAll(service), ['a-1', 'b-1'])
    await cluster.reaches(SHELLS, service.everywhere, ['a-1', 'b-1'])
  })

  test('should be able to change the type from ClusterIP to ExternalName', async () => {
    const service = cluster.service()
    service.put({ endpoints: ['a-1', 'b-1'] })
    await cluster.reaches(SHELLS, service.everywhere, ['a-1', 'b-1'])
    service.put({ type: 'ExternalName' })
    await cluster.fails(SHELLS, service.everywhere)
  })

  test('should be able to change the type from NodePort to ExternalName', async () => {
    const service = cluster.service()
    service.put({ type: 'NodePort', endpoints: ['a-1', 'b-1'] })
    await cluster.reaches([...SHELLS, 'client'], onAll(service), ['a-1', 'b-1'])
    service.put({ type: 'ExternalName' })
    await cluster.refuses(['client', 'shell-a', 'node/b'], onAll(service))
    await cluster.fails(SHELLS, service.everywhere)
  })

  test('should release NodePorts on delete', async () => {
    const [service, heir] = [cluster.service(), cluster.service()]
    service.put({ type: 'NodePort', endpoints: ['a-1', 'b-1'] })
    await cluster.reaches('client', onAll(service), ['a-1', 'b-1'])
    service.remove()
    await cluster.refuses(['client', 'shell-a', 'node/a'], onAll(service))
    const listening = await cluster.lab.mustRun('node/a', ['ss', '-Hnltu'])
    expect(listening).not.toContain(`:${service.nodePort} `)
    const ports = BOTH_PROTOCOLS.map((port) => ({ ...port, nodePort: service.nodePort }))
    heir.put({ type: 'NodePort', ports, endpoints: ['c-1'] })
    await cluster.reaches('client', onAll(service), ['c-1'])
  })

  test('should serve endpoints on same port and different protocols', async () => {
    const service = cluster.service()
    const slices = BOTH_PROTOCOLS.map(({ name, protocol }) => ({
      ports: [{ name, protocol, port: 8080 }],
      endpoints: [protocol === 'TCP' ? 'a-1' : 'b-1'],
    }))
    service.put({ slices })
    const both = (proto: 'tcp' | 'udp') => [service.at(4, proto), service.at(6, proto)]
    const [tcp, udp] = [both('tcp'), both('udp')]
    await cluster.reaches(SHELLS, tcp, ['a-1'])
    await cluster.reaches(SHELLS, udp, ['b-1'])
    service.put({ ports: BOTH_PROTOCOLS.slice(1) })
    await cluster.fails(SHELLS, tcp)
    await cluster.reaches(SHELLS, udp, ['b-1'])
  })

  test('should serve endpoints on same port and different protocol for internal traffic on Type LoadBalancer', async () => {
    const service = cluster.service()
    service.put({ type: 'LoadBalancer', endpoints: ['a-1', 'b-1'] })
    await cluster.reaches(SHELLS, service.everywhere, ['a-1', 'b-1'])
    await cluster.reaches([...SHELLS, 'client'], service.outerEverywhere, ['a-1', 'b-1'])
  })
}
