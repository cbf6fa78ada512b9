// SPDX-License-Identifier: Apache-2.0
/** Blocks as objects of a real API server. Layer: test. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { ApiClient } from '#lib/api/client.ts'
import { fromKubeconfig } from '#lib/api/connection/kubeconfig.ts'
import { asApiObject } from '#lib/api/resource.ts'
import { errorText } from '#lib/base/errors.ts'
import { formatCidr, parseCidr } from '#lib/base/ip.ts'
import { emptyBlock } from '#lib/ipam/block.ts'
import { IP_BLOCK, ipBlockObject } from '#lib/kube/objects/ip-block.ts'
import { NODE_NETWORK } from '#lib/kube/objects/node-network.ts'
import { ALL } from '#lib/model/selector/selector.ts'
import type { IPPool } from '#lib/model/ip-pool.ts'
import { ApiBlocks } from '#agent/ipam/api-blocks.ts'
import { Ipam } from '#agent/ipam/ipam.ts'
import { kubernetesPrograms } from '../../testkit/kubernetes/build/programs.ts'
import { keepsBlocks } from '../support/contracts/block-store-contract.ts'
import { MemoryBlocks } from '../support/fakes/memory-blocks.ts'
import { define } from './definitions.ts'
import { LoopbackCluster } from '../../testkit/kubernetes/loopback-cluster.ts'

const BUILD_MS = 30 * 60_000

let folder = ''
let cluster: LoopbackCluster
let client: ApiClient

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-blocks-'))
  cluster = await LoopbackCluster.start({ programs: await kubernetesPrograms(), folder })
  client = new ApiClient({ server: fromKubeconfig(cluster.kubeconfig()) })
  await define(client, IP_BLOCK.kind, NODE_NETWORK.kind)
  for (const name of ['n1', 'n2']) await client.create(asApiObject({ apiVersion: 'v1', kind: 'Node', metadata: { name } }))
  for (const name of ['n1', 'n2']) {
    const spec = { addresses: ['192.0.2.1'] }
    await client.create(asApiObject({ ...NODE_NETWORK, metadata: { name }, spec }))
  }
}, BUILD_MS)

afterAll(async () => {
  await client[Symbol.asyncDispose]()
  await cluster[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

beforeEach(async () => {
  for (const { apiVersion, kind, metadata } of await client.list(IP_BLOCK)) await client.delete({ apiVersion, kind, name: metadata.name })
})

function blocks(node: string, unreadable: (error: unknown) => void = () => undefined): ApiBlocks {
  return new ApiBlocks({ api: client, node, unreadable })
}

describe('objects', () => {
  keepsBlocks(() => (node) => blocks(node))

  test("a node's NodeNetwork says which blocks lead to it, beside its other fields", async () => {
    const spec = async (): Promise<unknown> => (await client.get({ ...NODE_NETWORK, name: 'n1' }))['spec']
    await blocks('n1').announce(['10.0.1.64/26', 'fd00::/122'].map(parseCidr))
    expect(await spec()).toEqual({ addresses: ['192.0.2.1'], blocks: ['10.0.1.64/26', 'fd00::/122'] })
    await blocks('n1').announce([])
    expect(await spec()).toEqual({ addresses: ['192.0.2.1'], blocks: [] })
  })

  test('blocks of a node without a NodeNetwork are not announced', async () => {
    await expect(blocks('n3').announce([parseCidr('10.0.1.64/26')])).rejects.toThrow('there is no NodeNetwork n3')
    await blocks('n3').announce([])
    // whose it would be is not known
    expect((await client.list(NODE_NETWORK)).map(({ metadata }) => metadata.name)).toEqual(['n1', 'n2'])
  })

  test('of which one cannot be read are the others, and its own node says so', async () => {
    const block = emptyBlock(parseCidr('10.0.0.0/26'), 'n2')
    await blocks('n1').create(emptyBlock(parseCidr('10.0.0.64/26'), 'n1'))
    const { spec, ...object } = ipBlockObject(block)
    const elsewhere = { address: '10.9.9.9', namespace: 'default', pod: 'web', containerId: 'c1' }
    await client.create(asApiObject({ ...object, spec: { ...spec, allocations: [elsewhere] } }))
    const unreadable: string[] = []
    const all = await blocks('n1', (error) => unreadable.push(errorText(error))).all()
    expect(all.map(({ block: { cidr } }) => formatCidr(cidr))).toEqual(['10.0.0.64/26'])
    expect(unreadable).toEqual([expect.stringContaining('IPAMBlock 10-0-0-0-26 cannot be read')])
    await expect(blocks('n2').own()).rejects.toThrow('IPAMBlock 10-0-0-0-26 cannot be read')
  })
})

test('nodes that start at the same time share a pool without giving one address twice', async () => {
  const rest = { natOutgoing: false, overlay: 'Never', assigns: 'all', nodes: ALL, namespaces: ALL } as const
  const pool: IPPool = { kind: 'IPPool', namespace: '', name: 'p', cidr: parseCidr('10.9.0.0/26'), blockBits: 30, ...rest }
  const ipams = ['n1', 'n2', 'n1', 'n2'].map(
    (node) => new Ipam({ node, shared: blocks(node), local: new MemoryBlocks().store(node), now: () => Date.now(), restMs: 60_000 }),
  )
  const given = await Promise.all(
    ipams.flatMap((ipam, at) =>
      Array.from({ length: 10 }, (_, number) =>
        ipam.assign({
          holder: { namespace: 'default', pod: `p${at}-${number}`, containerId: `c${at}-${number}` },
          plans: [{ kind: 'pools', pools: [pool], ref: 'Pod/default/p' }],
          inUse: new Set(),
          elsewhere: [],
          isInhabited: () => false,
          isAbandoned: () => false,
          isWanted: () => true,
        }),
      ),
    ),
  )
  expect(new Set(given.flat()).size).toBe(40)
  const held = (await blocks('n1').all()).flatMap(({ block }) => [...block.held.values()])
  expect(held).toHaveLength(40)
})
