// SPDX-License-Identifier: Apache-2.0
/** Blocks of addresses that nodes take, announce and give back. Layer: test. */
import { expect, test } from 'vitest'
import { formatAddr, formatCidr, parseAddr } from '#lib/base/ip.ts'
import { inhabitedElsewhere, rangesElsewhere, type AddressPlan } from '#lib/ipam/plan.ts'
import type { Node } from '#lib/model/node.ts'
import type { Pod } from '#lib/model/pod.ts'
import type { AddressRequest } from '#agent/ipam/ipam.ts'
import { FOUR, REST_MS, SIX, World, give, poolOf, pools, request } from '../../support/address-world.ts'
import { Dead, type Fate } from '../../support/fakes/memory-blocks.ts'

function podOf(name: string, address: string, nodeName: string): Pod {
  const rest = {
    phase: 'Running',
    hostNetwork: false,
    terminating: false,
    serviceAccount: 'default',
    labels: new Map(),
    ports: [],
  } as const
  return { kind: 'Pod', namespace: 'default', name, nodeName, podIPs: [parseAddr(address)], ...rest }
}

test("addresses are not in another node's block of another size, as a pool that was created again may have", async () => {
  const world = new World()
  const [one, two] = [world.ipam('n1'), world.ipam('n2')]
  const given = []
  for (const pod of ['a', 'b', 'c']) given.push(await give(one, pod, pools(FOUR)))
  expect(world.shared.blocks.size).toBe(1)
  const n1: Node = {
    ...{ kind: 'Node', namespace: '', name: 'n1', addresses: [], podCIDRs: [FOUR.cidr], zone: undefined, labels: new Map(), subnets: [] },
    blocks: world.shared.announced.get('n1') ?? [],
  }
  const elsewhere = rangesElsewhere({ nodes: new Map([['n1', n1]]) }, 'n2', false)
  const second = async (pod: string, plans: readonly AddressPlan[]): Promise<string> =>
    (await two.assign({ ...request(pod, plans), elsewhere })).map(formatAddr).join(' ')
  const smaller = poolOf('10.0.0.0/28', 31)
  for (let pod = 0; pod < 12; pod++) given.push(await second(`e${pod}`, pools(smaller)))
  expect(new Set(given).size).toBe(15)
  await expect(second('f', pools(smaller))).rejects.toThrow('no address is free')
  const fixed: AddressPlan[] = [{ kind: 'fixed', addr: parseAddr(given[0] ?? ''), pool: smaller, ref: 'Pod/default/web' }]
  await expect(second('f', fixed)).rejects.toThrow('of which some node has')
})

test('when all blocks are taken, those of a node that is gone are free', async () => {
  const world = new World()
  const [gone, ipam] = [world.ipam('gone'), world.ipam('n1')]
  const tiny = pools(poolOf('10.0.0.0/30', 31))
  for (const pod of ['x', 'y', 'z']) await give(gone, pod, tiny)
  expect(await give(ipam, 'a', tiny)).toMatch(/^10\.0\.0\./)
  expect([...world.shared.blocks.values()].map(({ block }) => block.node).sort()).toEqual(['gone', 'n1'])
  await expect(give(world.ipam('n2'), 'b', tiny)).resolves.toBeDefined()
  await expect(give(world.ipam('n3'), 'c', tiny)).rejects.toThrow('no block')
})

test('blocks that no pod needs go back, but for one', async () => {
  const world = new World()
  const ipam = world.ipam('n1')
  for (let at = 0; at < 9; at++) await give(ipam, `p${at}`, pools(FOUR))
  expect(world.shared.blocks.size).toBe(3)
  await ipam.release(() => true)
  await ipam.tidy([FOUR])
  expect(world.shared.blocks.size).toBe(3)
  world.now += REST_MS
  await ipam.tidy([FOUR])
  expect(world.shared.blocks.size).toBe(1)
  expect(world.shared.announced.get('n1')).toHaveLength(1)
  expect(await give(ipam, 'q', pools(FOUR))).toMatch(/^10\./)
})

test('of each family one block stays, in whatever order pools are', async () => {
  const world = new World()
  const ipam = world.ipam('n1')
  await give(ipam, 'a', pools(FOUR, SIX))
  await ipam.release(() => true)
  world.now += REST_MS
  for (const order of [
    [FOUR, SIX],
    [SIX, FOUR],
  ])
    await ipam.tidy(order)
  expect([...world.shared.blocks.values()].map(({ block }) => block.cidr.bits).sort()).toEqual([126, 30])
})

test.each([
  ['is gone', []],
  ['assigns nothing any more', [{ ...FOUR, assigns: 'none' } as const]],
  ['has blocks of another size', [poolOf('10.0.0.0/28', 31)]],
])('all blocks go back when their pool %s', async (_, left) => {
  const world = new World()
  const ipam = world.ipam('n1')
  await give(ipam, 'a', pools(FOUR))
  await ipam.tidy(left)
  expect(world.shared.blocks.size).toBe(1)
  await ipam.release(() => true)
  world.now += REST_MS
  await ipam.tidy(left)
  expect([world.shared.blocks.size, world.shared.announced.get('n1')]).toEqual([0, []])
})

test('a block that another node has taken while this one was thought to be gone is announced by that one alone', async () => {
  const world = new World()
  const [one, two] = [world.ipam('n1'), world.ipam('n2')]
  const single = poolOf('10.0.0.0/30', 30)
  await give(one, 'a', pools(single))
  await one.release(() => true)
  const taken = await two.assign({ ...request('b', pools(single)), isAbandoned: ({ node }) => node === 'n1' })
  expect(taken.map(formatAddr)).toEqual(['10.0.0.1'])
  // its Node is created again
  world.shared.announced.delete('n1')
  await one.tidy([single], [])
  expect(world.shared.announced.get('n1')).toEqual([])
})

test('blocks whose announcement went with the Node are announced again', async () => {
  const world = new World()
  const ipam = world.ipam('n1')
  await give(ipam, 'a', pools(FOUR))
  const announced = world.shared.announced.get('n1') ?? []
  expect(announced).toHaveLength(1)
  // a Node that was created again
  world.shared.announced.delete('n1')
  await ipam.tidy([FOUR])
  expect(world.shared.announced.has('n1')).toBe(false)
  await ipam.tidy([FOUR], [])
  expect(world.shared.announced.get('n1')).toEqual(announced)
  world.shared.announced.delete('n1')
  await ipam.tidy([FOUR], announced)
  expect(world.shared.announced.has('n1')).toBe(false)
})

test('a block in which pods of other nodes live is not taken, and nothing fixed is given from it', async () => {
  const world = new World()
  const tiny = poolOf('10.0.0.0/29', 30)
  // of another node; of this one; with the address of its node
  const there = [podOf('old', '10.0.0.2', 'n0'), podOf('own', '10.0.0.5', 'n1'), { ...podOf('host', '10.0.0.6', 'n0'), hostNetwork: true }]
  const isInhabited = inhabitedElsewhere({ pods: new Map(there.map((pod) => [pod.name, pod])) }, 'n1')
  const of = (pod: string, plans: readonly AddressPlan[]): AddressRequest => ({ ...request(pod, plans), isInhabited })
  const ipam = world.ipam('n1')
  const given = await ipam.assign(of('a', pools(tiny)))
  expect(given.map(formatAddr)).toEqual(['10.0.0.4'])
  const fixed: AddressPlan = { kind: 'fixed', addr: parseAddr('10.0.0.1'), pool: tiny, ref: 'Pod/default/b' }
  await expect(ipam.assign(of('b', [fixed]))).rejects.toThrow('of which pods of other nodes have addresses')
  await expect(world.ipam('n2').assign(of('c', pools(tiny)))).rejects.toThrow('no block')
})

test('a block of a node that the cluster has after all is not taken', async () => {
  const world = new World()
  const tiny = poolOf('10.0.0.0/30', 30)
  await give(world.ipam('gone'), 'a', pools(tiny))
  await world.ipam('gone').release(() => true)
  world.shared.nodes.add('gone')
  await expect(give(world.ipam('n1'), 'b', pools(tiny))).rejects.toThrow('no block')
  world.shared.nodes.delete('gone')
  expect(await give(world.ipam('n1'), 'b', pools(tiny))).toMatch(/^10\.0\.0\./)
})

test.each<readonly Fate[]>([['lost'], ['done', 'lost'], ['done', 'done', 'lost']])(
  'an agent that dies while it gives blocks back has announced none that another node may have by then: %j',
  async (...fates) => {
    const world = new World()
    const ipam = world.ipam('n1')
    for (let at = 0; at < 9; at++) await give(ipam, `p${at}`, pools(FOUR))
    await ipam.release(() => true)
    world.now += REST_MS
    const left = [...fates]
    await expect(world.ipam('n1', () => left.shift() ?? 'done').tidy([FOUR])).rejects.toThrow(Dead)
    const announced = (world.shared.announced.get('n1') ?? []).map(formatCidr)
    expect(announced.filter((range) => !world.shared.blocks.has(range))).toEqual([])
    // the next one says what it has
    const next = world.ipam('n1')
    await give(next, 'q', pools(FOUR))
    expect(world.shared.announced.get('n1')?.map(formatCidr)).toEqual([...world.shared.blocks.keys()])
  },
)
