// SPDX-License-Identifier: Apache-2.0
/** Traffic policies, what is done without ready endpoints, and health pages for load balancers. Layer: test. */
import { expect, test } from 'vitest'
import { peers, type Cluster } from '../../../testkit/lab/cluster.ts'
import { clientAddress } from './client.ts'
import { FAMILIES, HOST_PORT, NODES, PROTOS, type EndpointSpec } from '../../../testkit/lab/manifests.ts'
import { BOTH_PROTOCOLS } from '../../../testkit/lab/test-service.ts'

const ALL = ['shell-a', 'shell-b', 'shell-c', 'node/a', 'node/b', 'node/c']
const INTERNAL_LOCAL = { internalTrafficPolicy: 'Local' }
const EXTERNAL_LOCAL = { externalTrafficPolicy: 'Local' }
const ON_HOST = BOTH_PROTOCOLS.map((port) => ({ ...port, targetPort: HOST_PORT }))

/** Asked to go, and answering still. */
function leaving(pod: string): EndpointSpec {
  return { pod, ready: false, serving: true, terminating: true }
}

export function internalPolicyTests(cluster: Cluster): void {
  test('should respect internalTrafficPolicy=Local Pod to Pod', async () => {
    const service = cluster.service()
    service.put({ endpoints: ['a-1', 'b-1'], more: INTERNAL_LOCAL })
    await cluster.reaches(['shell-a', 'a-2'], service.everywhere, ['a-1'])
    await cluster.reaches('shell-b', service.everywhere, ['b-1'])
    await cluster.fails('shell-c', service.everywhere)
    service.put({ more: {} })
    await cluster.reaches('shell-c', service.everywhere, ['a-1', 'b-1'])
  })

  test('should respect internalTrafficPolicy=Local Pod (hostNetwork: true) to Pod', async () => {
    const service = cluster.service()
    service.put({ endpoints: ['a-1'], more: INTERNAL_LOCAL })
    await cluster.reaches('node/a', service.everywhere, ['a-1'])
    await cluster.fails(['node/b', 'node/c'], service.everywhere)
  })

  test('should respect internalTrafficPolicy=Local Pod and Node, to Pod (hostNetwork: true)', async () => {
    const service = cluster.service()
    service.put({ ports: ON_HOST, endpoints: ['host-a'], more: INTERNAL_LOCAL })
    await cluster.reaches(['shell-a', 'node/a'], service.everywhere, ['host-a'])
    await cluster.fails(['shell-b', 'node/b'], service.everywhere)
  })
}

export function externalPolicyTests(cluster: Cluster): void {
  test('should support externalTrafficPolicy=Local for type=NodePort', async () => {
    const service = cluster.service()
    service.put({ type: 'NodePort', endpoints: ['a-1'], more: EXTERNAL_LOCAL })
    await cluster.fails('client', [...service.onEvery('b'), ...service.onEvery('c')])
    for (const family of FAMILIES)
      for (const proto of PROTOS)
        expect(peers(await cluster.reaches('client', service.on('a', family, proto), ['a-1']))).toEqual([clientAddress(cluster, family)])
    // the cluster's own traffic is no external one
    await cluster.reaches(ALL, service.everywhere, ['a-1'])
    for (const node of NODES) await cluster.reaches([`shell-${node}`, `node/${node}`], service.onEvery(node), ['a-1'])
  })

  test('should fail health check node port if there are only terminating endpoints', async () => {
    const service = cluster.service()
    const more = { ...EXTERNAL_LOCAL, healthCheckNodePort: service.healthCheckNodePort }
    service.put({ type: 'LoadBalancer', endpoints: ['a-1'], more })
    await cluster.health('a', service, 200)
    await cluster.health('b', service, 503)
    service.put({ endpoints: [leaving('a-1')] })
    await cluster.health('a', service, 503)
    await cluster.reaches('client', service.onEvery('a'), ['a-1'])
  })

  test('should implement NodePort and HealthCheckNodePort correctly when ExternalTrafficPolicy changes', async () => {
    const service = cluster.service()
    const local = { ...EXTERNAL_LOCAL, healthCheckNodePort: service.healthCheckNodePort }
    const isLocal = async (): Promise<void> => {
      for (const node of ['a', 'b'] as const) {
        await cluster.health(node, service, 200)
        for (const family of FAMILIES) {
          const answers = await cluster.reaches('client', service.on(node, family), [`${node}-1`])
          expect(peers(answers)).toEqual([clientAddress(cluster, family)])
        }
      }
      await cluster.health('c', service, 503)
      await cluster.fails('client', service.onEvery('c'))
      await cluster.reaches(['node/c', 'shell-c'], service.onEvery('c'), ['a-1', 'b-1'])
    }
    service.put({ type: 'LoadBalancer', endpoints: ['a-1', 'b-1'], more: local })
    await isLocal()
    service.put({ more: { externalTrafficPolicy: 'Cluster' } })
    for (const node of NODES) {
      await cluster.health(node, service, 'ECONNREFUSED')
      await cluster.reaches(['client', `node/${node}`], service.onEvery(node), ['a-1', 'b-1'])
    }
    service.put({ more: local })
    await isLocal()
  })
}

export function fallbackTests(cluster: Cluster): void {
  test('should fallback to terminating endpoints when there are no ready endpoints with internalTrafficPolicy=Cluster', async () => {
    const service = cluster.service()
    service.put({ endpoints: [leaving('a-1'), 'b-1'] })
    await cluster.reaches(ALL, service.everywhere, ['b-1'])
    service.put({ endpoints: [leaving('a-1'), leaving('b-1')] })
    await cluster.reaches(ALL, service.everywhere, ['a-1', 'b-1'])
    service.put({ endpoints: [leaving('a-1'), { pod: 'b-1', ready: false, serving: false, terminating: true }] })
    await cluster.reaches(ALL, service.everywhere, ['a-1'])
  })

  test('should fallback to local terminating endpoints when there are no ready endpoints with internalTrafficPolicy=Local', async () => {
    const service = cluster.service()
    service.put({ endpoints: [leaving('a-1'), leaving('a-2')], more: INTERNAL_LOCAL })
    await cluster.reaches(['shell-a', 'node/a'], service.everywhere, ['a-1', 'a-2'])
    await cluster.fails(['shell-b', 'node/b'], service.everywhere)
    // ready ones elsewhere are no help
    service.put({ endpoints: [leaving('a-1'), 'b-1'] })
    await cluster.reaches('shell-a', service.everywhere, ['a-1'])
    await cluster.reaches('shell-b', service.everywhere, ['b-1'])
    service.put({ endpoints: [leaving('a-1'), 'a-2'] })
    await cluster.reaches(['shell-a', 'node/a'], service.everywhere, ['a-2'])
  })

  test('should fallback to terminating endpoints when there are no ready endpoints with externallTrafficPolicy=Cluster', async () => {
    const service = cluster.service()
    service.put({ type: 'NodePort', endpoints: [leaving('a-1'), 'b-1'] })
    await cluster.reaches(['client', 'shell-c'], [...service.onEvery('a'), ...service.onEvery('c')], ['b-1'])
    service.put({ endpoints: [leaving('a-1'), leaving('b-1')] })
    await cluster.reaches(['client', 'shell-c'], [...service.onEvery('a'), ...service.onEvery('c')], ['a-1', 'b-1'])
  })

  test('should fallback to local terminating endpoints when there are no ready endpoints with externalTrafficPolicy=Local', async () => {
    const service = cluster.service()
    service.put({ type: 'NodePort', endpoints: [leaving('a-1'), leaving('a-2')], more: EXTERNAL_LOCAL })
    await cluster.reaches('client', service.onEvery('a'), ['a-1', 'a-2'])
    await cluster.fails('client', service.onEvery('b'))
    service.put({ endpoints: [leaving('a-1'), 'b-1'] })
    await cluster.reaches('client', service.onEvery('a'), ['a-1'])
    await cluster.reaches('client', service.onEvery('b'), ['b-1'])
  })
}
