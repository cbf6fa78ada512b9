// SPDX-License-Identifier: Apache-2.0
/** The agent's own commands against a real API server. Layer: test. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ApiClient } from '#lib/api/client.ts'
import { fromKubeconfig } from '#lib/api/connection/kubeconfig.ts'
import { mustRun } from '../../lab/processes/command.ts'
import { kubernetesPrograms } from '../../testkit/kubernetes/build/programs.ts'
import { define } from './definitions.ts'
import { LoopbackCluster, PORT } from '../../testkit/kubernetes/loopback-cluster.ts'
import { programCommand } from '../../testkit/base/program.ts'

const AGENT = [...programCommand('agent'), '--node', 'n1', '--print-desired']
const SERVER = '127.0.0.1'

test('what is wanted is the same from the API as from its objects in a directory, but for the way to the API itself', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'netplane-api-agent-'))
  await using stack = new AsyncDisposableStack()
  stack.defer(() => rmSync(folder, { recursive: true }))
  const cluster = stack.use(await LoopbackCluster.start({ programs: await kubernetesPrograms(), folder: join(folder, 'cluster') }))
  const client = stack.use(new ApiClient({ server: fromKubeconfig(cluster.kubeconfig()) }))
  await define(client, 'NodeNetwork')
  await client.create({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'n1' },
    spec: { podCIDR: '10.1.0.0/24', podCIDRs: ['10.1.0.0/24'] },
  })
  const status = { addresses: [{ type: 'InternalIP', address: '192.168.7.1' }] }
  await client.patch({ apiVersion: 'v1', kind: 'Node', name: 'n1' }, { status }, { type: 'merge', subresource: 'status' })
  const web = { namespace: 'default', name: 'web' }
  await client.create({ apiVersion: 'v1', kind: 'Service', metadata: web, spec: { ports: [{ name: 'http', port: 80 }] } })
  await client.create({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { ...web, labels: { 'kubernetes.io/service-name': 'web' } },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 8080 }],
    endpoints: [{ addresses: ['10.1.0.7'], conditions: { ready: true } }],
  })
  const directory = join(folder, 'objects')
  mkdirSync(directory)
  const kinds = [
    ['v1', 'Node'],
    ['v1', 'Namespace'],
    ['v1', 'Service'],
    ['discovery.k8s.io/v1', 'EndpointSlice'],
  ] as const
  for (const [apiVersion, kind] of kinds) {
    const items = await client.list({ apiVersion, kind })
    writeFileSync(join(directory, `${kind}.json`), JSON.stringify({ apiVersion: 'v1', kind: 'List', items }))
  }
  const fromApi = await mustRun([...AGENT, '--kubeconfig', cluster.kubeconfig()])
  const fromDirectory = await mustRun([...AGENT, '--resources', directory])
  expect(fromDirectory).toContain('10.1.0.7')
  const [more, less] = [surplus(fromApi, fromDirectory), surplus(fromDirectory, fromApi)]
  expect(less).toEqual([])
  expect(more.filter((line) => /cidr|port|protocol|direction/.test(line)).sort()).toEqual([
    `"cidr": "${SERVER}/32"`,
    '"direction": 1',
    `"port": ${PORT}`,
    '"protocol": 6',
  ])
})

/** Lines that the first has more often. */
function surplus(text: string, than: string): string[] {
  const lines = (of: string): string[] => of.split('\n').map((line) => line.trim().replace(/,$/, ''))
  const left = lines(than)
  return lines(text).filter((line) => {
    const at = left.indexOf(line)
    if (at >= 0) left.splice(at, 1)
    return at < 0 && /\w/.test(line)
  })
}
