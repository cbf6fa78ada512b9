// SPDX-License-Identifier: Apache-2.0
/** Addresses given to pods, and taken back. Layer: test. */
import { expect, test } from 'vitest'
import { formatAddr, parseAddr, parseCidr } from '#lib/base/ip.ts'
import type { AddressPlan } from '#lib/ipam/plan.ts'
import type { IPBlock } from '#lib/model/ip-block.ts'
import { Ipam } from '#agent/ipam/ipam.ts'
import { FOUR, REST_MS, SIX, World, give, poolOf, pools, request, take } from '../../support/address-world.ts'

test('addresses of both families come from blocks that the node has taken and announced', async () => {
  const world = new World()
  const ipam = world.ipam('n1')
  const [first, again, second] = [
    await give(ipam, 'a', pools(FOUR, SIX)),
    await give(ipam, 'a', pools(FOUR, SIX)),
    await give(ipam, 'b', pools(FOUR, SIX)),
  ]
  expect(again).toBe(first)
  expect(second).not.toBe(first)
  expect(world.held()).toHaveLength(4)
  expect(world.shared.announced.get('n1')?.map(({ bits }) => bits)).toEqual([30, 126])
})

test('addresses given back rest; a full block has another one taken, a full pool ends the rest', async () => {
  const world = new World()
  const ipam = world.ipam('n1')
  const tiny = pools(poolOf('10.0.0.0/30', 31))
  const given = [await give(ipam, 'a', tiny), await give(ipam, 'b', tiny)]
  await take(ipam, 'a')
  given.push(await give(ipam, 'c', tiny), await give(ipam, 'd', tiny))
  expect(new Set(given).size).toBe(4)
  expect(await give(ipam, 'e', tiny)).toBe(given[0])
  await expect(give(ipam, 'f', tiny)).rejects.toThrow('Pod default/web: IPPool p: no address is free, and no block')
})

test('all or none: what was given of one family comes back when there is none of the other', async () => {
  const world = new World()
  const ipam = world.ipam('n1')
  const one = poolOf('fd00::/128', 128)
  await give(ipam, 'a', pools(FOUR, one))
  await expect(give(ipam, 'b', pools(FOUR, one))).rejects.toThrow('no address is free')
  expect(world.held()).toHaveLength(2)
})

test("addresses of the node's own range need no block and no announcement", async () => {
  const world = new World()
  const plan: AddressPlan[] = [{ kind: 'range', range: parseCidr('10.7.0.0/30'), ref: 'Pod/default/web' }]
  const ipam = world.ipam('n1')
  expect(await give(ipam, 'a', plan)).toBe('10.7.0.1')
  expect(await give(world.ipam('n1'), 'a', plan)).toBe('10.7.0.1')
  expect(world.shared.blocks.size + world.shared.announced.size).toBe(0)
  for (const pod of ['b', 'c']) await give(ipam, pod, plan)
  await expect(give(ipam, 'e', plan)).rejects.toThrow('all addresses of 10.7.0.0/30 are in use')
})

test('an address that is asked for is given to one pod, on the node that has its block', async () => {
  const world = new World()
  const [one, two] = [world.ipam('n1'), world.ipam('n2')]
  const fixed: AddressPlan[] = [{ kind: 'fixed', addr: parseAddr('10.0.0.9'), pool: FOUR, ref: 'Pod/default/web' }]
  expect(await give(one, 'a', fixed)).toBe('10.0.0.9')
  expect(await give(one, 'a', fixed)).toBe('10.0.0.9')
  await expect(give(one, 'b', fixed)).rejects.toThrow('10.0.0.9 belongs to another pod')
  await expect(give(two, 'b', fixed)).rejects.toThrow('10.0.0.9 is in 10.0.0.8/30, which node n1 has')
  await take(one, 'a')
  expect(await give(one, 'b', fixed)).toBe('10.0.0.9')
  // a pod of a time before these blocks
  const inUse = new Set([parseAddr('10.0.0.10')])
  const old: AddressPlan[] = [{ kind: 'fixed', addr: parseAddr('10.0.0.10'), pool: FOUR, ref: 'Pod/default/web' }]
  await expect(one.assign({ ...request('c', old), inUse })).rejects.toThrow('10.0.0.10 belongs to another pod')
})

test('what another sandbox of the pod has left is there for this one, asked for or the last of all', async () => {
  const world = new World()
  const ipam = world.ipam('n1')
  const fixed: AddressPlan[] = [{ kind: 'fixed', addr: parseAddr('10.0.0.9'), pool: FOUR, ref: 'Pod/default/web' }]
  const last: AddressPlan[] = [{ kind: 'range', range: parseCidr('10.7.0.8/32'), ref: 'Pod/default/web' }]
  for (const plan of [fixed, last]) {
    const given = await give(ipam, 'a', plan)
    expect((await ipam.assign(request('a', plan, 'a-2'))).map(formatAddr)).toEqual([given])
    await expect(give(ipam, 'b', plan)).rejects.toThrow(/belongs to another pod|are in use/)
    expect(world.held()).toHaveLength(1)
    await take(ipam, 'a')
  }
})

test('an address that is given when no request waits any more goes back at once', async () => {
  const world = new World()
  const ipam = world.ipam('n1')
  let asked = 0
  await expect(ipam.assign({ ...request('a', pools(FOUR)), isWanted: () => asked++ === 0 })).rejects.toThrow(
    'no call waits for it any more',
  )
  expect(world.held()).toEqual([])
})

test('a block that comes to be when its maker has given up is found', async () => {
  const world = new World()
  const store = world.shared.store('n1')
  const late: (() => Promise<unknown>)[] = []
  const create = (block: IPBlock): Promise<never> => {
    late.push(() => store.create(block))
    return Promise.reject(new Error('took too long'))
  }
  const shared = { ...store, create }
  const ipam = new Ipam({ node: 'n1', shared, local: world.local.store('n1'), now: () => world.now, restMs: REST_MS })
  await expect(give(ipam, 'a', pools(FOUR))).rejects.toThrow('took too long')
  expect(await ipam.release(() => true)).toBe(0)
  // as the agent does once a minute to find what no pod has; the first time is too early
  await ipam.tidy([FOUR])
  await late[0]?.()
  await ipam.tidy([FOUR])
  expect([await ipam.release(() => true), world.held()]).toEqual([1, []])
})

test('addresses are of what a pool or the cluster has left of a block, nothing beside it', async () => {
  const world = new World()
  const ipam = world.ipam('n1')
  const range = (text: string): AddressPlan[] => [{ kind: 'range', range: parseCidr(text), ref: 'Pod/default/web' }]
  expect(await give(ipam, 'a', range('10.7.0.0/28'))).toBe('10.7.0.1')
  expect(await give(ipam, 'b', range('10.7.0.8/30'))).toBe('10.7.0.9')
  // what both blocks have is given once, whichever is asked
  const given = [await give(ipam, 'c', range('10.7.0.0/30')), await give(ipam, 'd', range('10.7.0.0/30'))]
  expect(given).toEqual(['10.7.0.2', '10.7.0.3'])
  await expect(give(ipam, 'e', range('10.7.0.0/30'))).rejects.toThrow('all addresses of 10.7.0.0/30 are in use')
  await take(ipam, 'b')
  world.now += REST_MS
  expect(await give(ipam, 'f', range('10.7.0.0/28'))).toBe('10.7.0.4')
  const smaller = pools(poolOf('10.0.0.0/31', 31))
  expect(await give(ipam, 'g', pools(poolOf('10.0.0.0/30', 30)))).toBe('10.0.0.1')
  expect(await give(ipam, 'h', smaller)).toBe('10.0.0.0')
  await expect(give(ipam, 'i', smaller)).rejects.toThrow('no address is free, and no block')
})

test('addresses of networks are given when there is no other, before those that rest', async () => {
  const world = new World()
  const ipam = world.ipam('n1')
  const range: AddressPlan[] = [{ kind: 'range', range: parseCidr('10.8.0.0/29'), ref: 'Pod/default/web' }]
  const given = []
  for (const pod of ['a', 'b', 'c', 'd', 'e', 'f']) given.push(await give(ipam, pod, range))
  expect(given).toEqual(['10.8.0.1', '10.8.0.2', '10.8.0.3', '10.8.0.4', '10.8.0.5', '10.8.0.6'])
  await take(ipam, 'b')
  for (const pod of ['g', 'h', 'i']) given.push(await give(ipam, pod, range))
  expect(given.slice(6)).toEqual(['10.8.0.0', '10.8.0.7', '10.8.0.2'])
  await expect(give(ipam, 'j', range)).rejects.toThrow('all addresses of 10.8.0.0/29 are in use')
  // as an agent before this one may have given it
  expect(await give(world.ipam('n1'), 'g', range)).toBe('10.8.0.0')
})

test('a node takes another block before it gives addresses of networks', async () => {
  const ipam = new World().ipam('n1')
  const pool = pools(poolOf('10.0.0.0/28', 29))
  const given = []
  for (let pod = 0; pod < 16; pod++) given.push(await give(ipam, `p${pod}`, pool))
  expect(new Set(given).size).toBe(16)
  expect(given.slice(14).sort()).toEqual(['10.0.0.0', '10.0.0.15'])
})

test('a pod that asks again has its address, whatever block it is in', async () => {
  const world = new World()
  const ipam = world.ipam('n1')
  const tiny = pools(poolOf('10.0.0.0/30', 31))
  const given = []
  for (const pod of ['a', 'b', 'c']) given.push(await give(ipam, pod, tiny))
  await take(ipam, 'a')
  world.now += REST_MS
  expect(await give(ipam, 'c', tiny)).toBe(given[2])
})

test('an agent that another one has come after sees what that one has done', async () => {
  const world = new World()
  const [old, now] = [world.ipam('n1'), world.ipam('n1')]
  const given = [await give(old, 'a', pools(FOUR)), await give(now, 'b', pools(FOUR)), await give(old, 'c', pools(FOUR))]
  expect(new Set(given).size).toBe(3)
  await take(now, 'a')
  await take(old, 'b')
  expect(world.held()).toHaveLength(1)
})

test('given back by address: what is still in use stays with its holder', async () => {
  const world = new World()
  const ipam = world.ipam('n1')
  const [a, b] = [await give(ipam, 'a', pools(FOUR)), await give(ipam, 'b', pools(FOUR))]
  expect(await ipam.release((_, addr) => formatAddr(addr) !== a)).toBe(1)
  expect([a, b]).toEqual([await give(ipam, 'a', pools(FOUR)), b])
  expect(world.held()).toHaveLength(1)
})

test("addresses of the node's own range are given, and come back, while blocks of pools cannot be read", async () => {
  const world = new World()
  const refused = () => Promise.reject(new Error('no API server'))
  const shared = { ...world.shared.store('n1'), own: refused, announce: refused }
  const ipam = new Ipam({ node: 'n1', shared, local: world.local.store('n1'), now: () => world.now, restMs: REST_MS })
  expect(await give(ipam, 'a', [{ kind: 'range', range: parseCidr('10.7.0.0/30'), ref: 'Pod/default/web' }])).toBe('10.7.0.1')
  await expect(give(ipam, 'b', pools(FOUR))).rejects.toThrow('no API server')
  await expect(take(ipam, 'a')).rejects.toThrow('no API server')
  expect(world.held()).toEqual([])
})

test('a request that waits no longer when its turn comes gets no address, and releases none', async () => {
  const world = new World()
  const ipam = world.ipam('n1')
  await give(ipam, 'a', pools(FOUR))
  const isWanted = () => false
  await expect(ipam.assign({ ...request('b', pools(FOUR)), isWanted })).rejects.toThrow('those before it took too long')
  await expect(ipam.release(() => true, isWanted)).rejects.toThrow('those before it took too long')
  expect(world.held()).toHaveLength(1)
})

test("an address that the agent has on loan is no pod's, is written down nowhere, and is the last that pods get", async () => {
  const world = new World()
  const ipam = world.ipam('n1')
  const tiny = pools(poolOf('10.0.0.0/30', 30))
  const lend = async () => await ipam.lend({ plans: tiny, inUse: new Set(), isWanted: () => true })
  await expect(lend()).rejects.toThrow('Pod default/web: no block of this node has an address to spare')
  const first = await give(ipam, 'a', tiny)
  await expect(lend(), 'it would be the last').rejects.toThrow('to spare')
  await take(ipam, 'a')
  world.now += REST_MS
  const lent = await lend()
  expect([first, lent.addresses.map(formatAddr), world.held()]).toEqual(['10.0.0.1', ['10.0.0.2'], []])
  expect(await give(ipam, 'a', tiny)).toBe('10.0.0.1')
  // those of networks are the last that are left
  expect(await give(ipam, 'b', tiny)).toBe('10.0.0.0')
  lent[Symbol.dispose]()
  expect(await give(ipam, 'c', tiny)).toBe('10.0.0.2')
})

test('a block of which an address is on loan is not given back', async () => {
  const world = new World()
  const ipam = world.ipam('n1')
  const two = pools(poolOf('10.0.0.0/28', 30))
  for (const pod of ['a', 'b', 'c', 'd']) await give(ipam, pod, two)
  for (const pod of ['a', 'b', 'c', 'd']) await take(ipam, pod)
  world.now += REST_MS
  const lent = await Promise.all([1, 2, 3].map(() => ipam.lend({ plans: two, inUse: new Set(), isWanted: () => true })))
  const tidy = async (): Promise<number> => {
    await ipam.tidy([poolOf('10.0.0.0/28', 30)])
    return world.shared.blocks.size
  }
  expect(await tidy()).toBe(2)
  for (const one of lent) one[Symbol.dispose]()
  expect(await tidy()).toBe(1)
})
