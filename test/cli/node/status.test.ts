// SPDX-License-Identifier: Apache-2.0
/** `node status`: what an agent and a cluster say of a node. Layer: test. */
import { createServer, type Server } from 'node:http'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { AddressInfo } from 'node:net'
import { once } from 'node:events'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { asApiObject } from '#lib/api/resource.ts'
import { readArgs } from '../../../cli/args.ts'
import type { CommandResult } from '../../../cli/command-result.ts'
import { nodeNetworkText } from '../../../cli/node/node-network.ts'
import { statusCommand } from '../../../cli/node/status.ts'

const NETWORK = {
  apiVersion: 'netplane.io/v3',
  kind: 'NodeNetwork',
  metadata: { name: 'n1' },
  spec: { addresses: ['192.0.2.1', '2001:db8::1'], podCIDRs: ['10.244.1.0/24'], blocks: ['10.1.0.0/26'], newer: 'field' },
  status: {
    version: 'v3.31.5',
    dataplane: { mode: 'BPF', since: '2026-01-01T00:00:00Z', configurations: {} },
    proof: {
      mode: 'BPF',
      state: 'Failed',
      asked: 12,
      answered: 11,
      failed: ['TCP 10.96.0.1:443'],
      nodePorts: [],
      at: '2026-01-01T00:00:05Z',
    },
    kubeProxy: 'Absent',
  },
}
const TEXT = `NodeNetwork n1
  Addresses:   192.0.2.1 2001:db8::1
  Pod ranges:  10.244.1.0/24 10.1.0.0/26
  Interfaces:  -
  Agent:       v3.31.5
  Services:    BPF since 2026-01-01T00:00:00Z
  Proof:       Failed as BPF, 11 of 12 answered, at 2026-01-01T00:00:05Z
               not answered: TCP 10.96.0.1:443
  kube-proxy:  Absent
`
const READY = { ready: true, conditions: [{ name: 'source.api', ok: true, since: 0, reason: '' }] }
const TABLE = 'CONDITION   HOLDS  SINCE                     REASON\nsource.api  yes    1970-01-01T00:00:00.000Z  -\n'

let folder = ''
let server: Server
let version = 'v3.0.0'

/** The agent's page, and the objects of a cluster. */
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-status-'))
  const pages: Readonly<Record<string, () => unknown>> = {
    '/readiness': () => READY,
    '/apis/netplane.io/v3/nodenetworks/n1': () => NETWORK,
    '/apis/netplane.io/v3/clusterinformations/default': () => ({
      ...{ apiVersion: 'netplane.io/v3', kind: 'ClusterInformation', metadata: { name: 'default' } },
      spec: { netplaneVersion: version },
    }),
  }
  server = createServer((request, response) => {
    const page = pages[request.url ?? '']
    const absent = { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'NotFound', code: 404 }
    response.writeHead(page === undefined ? 404 : 200, { 'content-type': 'application/json' })
    response.end(JSON.stringify(page === undefined ? absent : page()))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const cluster = { name: 'c', cluster: { server: `http://${place()}` } }
  const kubeconfig = {
    ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'c', clusters: [cluster], users: [{ name: 'c', user: {} }] },
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'c' } }],
  }
  writeFileSync(join(folder, 'kubeconfig'), JSON.stringify(kubeconfig))
})

afterAll(() => {
  server.close()
  rmSync(folder, { recursive: true })
})

function place(): string {
  return `127.0.0.1:${(server.address() as AddressInfo).port}`
}

async function status(...args: readonly string[]): Promise<CommandResult> {
  const order = readArgs(['node', 'status', '--agent', place(), ...args])
  if (order.kind !== 'node status') throw new Error(order.kind)
  return await statusCommand(order)
}

const inCluster = (...args: readonly string[]) => status('--kubeconfig', join(folder, 'kubeconfig'), ...args)

test('without a node no cluster is asked', async () => {
  expect(await status()).toEqual({ text: TABLE, warnings: '', exitCode: 0 })
  expect(() => readArgs(['node', 'status', '--context', 'x'])).toThrow('--context: needs --node')
})

test('the NodeNetwork comes after the conditions, with a warning of another version', async () => {
  version = 'v3.0.0'
  const { text, warnings, exitCode } = await inCluster('--node', 'n1')
  expect({ text, exitCode }).toEqual({ text: `${TABLE}\n${TEXT}`, exitCode: 0 })
  expect(warnings).toMatch(/^versions differ: /)
})

test('a node of which the cluster has nothing is not ready', async () => {
  const { text, warnings, exitCode } = await inCluster('--node', 'n2')
  expect({ text, exitCode }).toEqual({ text: TABLE, exitCode: 1 })
  expect(warnings).toContain('there is no NodeNetwork n2')
})

test('a cluster of a newer minor version is not read, and the agent still is', async () => {
  version = 'v999.0.0'
  const { text, warnings, exitCode } = await inCluster('--node', 'n1')
  expect({ text, exitCode }).toEqual({ text: TABLE, exitCode: 1 })
  expect(warnings).toContain('the NodeNetwork of n1 is not known: version mismatch')
})

test('JSON has the object beside the conditions', async () => {
  version = 'v3.0.0'
  expect(JSON.parse((await inCluster('--node', 'n1', '--json')).text)).toEqual({ ...READY, nodeNetwork: NETWORK })
  expect(JSON.parse((await status('--json')).text)).toEqual(READY)
})

test('an agent that is away leaves the NodeNetwork, and the node is not ready', async () => {
  const { text, exitCode } = await inCluster('--node', 'n1', '--agent', '127.0.0.1:1')
  expect({ text, exitCode }).toEqual({ text: TEXT, exitCode: 1 })
})

test('an agent that has said nothing of services yet has one line of them', () => {
  expect(nodeNetworkText(asApiObject({ ...NETWORK, status: undefined }))).toContain('  Services:    the agent says nothing of them yet\n')
})
