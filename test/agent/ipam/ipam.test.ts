// SPDX-License-Identifier: Apache-2.0
/** Addresses for pods of many nodes, some of which die in the middle of it. Layer: test. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { formatAddr, formatCidr, parseAddr, parseCidr, type Addr } from '#lib/base/ip.ts'
import { inhabitedElsewhere, rangesElsewhere, type AddressPlan } from '#lib/ipam/plan.ts'
import { ALL } from '#lib/model/selector.ts'
import type { Node } from '#lib/model/node.ts'
import type { IPPool } from '#lib/model/ip-pool.ts'
import type { Pod } from '#lib/model/pod.ts'
import { Ipam, type AddressRequest } from '#agent/ipam/ipam.ts'
import { Dead, MemoryBlocks, type Fate } from '../../support/memory-blocks.ts'

const REST_MS = 1000

function poolOf(cidr: string, blockBits: number, name = 'p'): IPPool {
  const range = parseCidr(cidr)
  const rest = { natOutgoing: false, overlay: 'Never', assigns: 'all', nodes: ALL, namespaces: ALL } as const
  return { kind: 'IPPool', namespace: '', name, cidr: range, blockBits, ...rest }
}

const FOUR = poolOf('10.0.0.0/28', 30)
const SIX = poolOf('fd00::/124', 126)

class World {
  readonly shared = new MemoryBlocks()
  readonly local = new MemoryBlocks()
  now = 0

  ipam(node: string, fate?: () => Fate): Ipam {
    const [shared, local] = [this.shared.store(node, fate), this.local.store(node, fate)]
    return new Ipam({ node, shared, local, now: () => this.now, restMs: REST_MS })
  }

  /** "pod address" of all that are held, in any block */
  held(): string[] {
    return [...this.shared.blocks.values(), ...this.local.blocks.values()].flatMap(({ block }) =>
      [...block.held].map(([index, { pod }]) => `${pod} ${formatCidr(block.cidr)}+${index}`),
    )
  }
}

function pools(...of: readonly IPPool[]): AddressPlan[] {
  return of.map((pool) => ({ kind: 'pools', pools: [pool], ref: 'Pod/default/web' }))
}

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

/** 10.7.0.0 is in use whatever blocks say. */
function request(pod: string, plans: readonly AddressPlan[]): AddressRequest {
  return {
    holder: { namespace: 'default', pod, containerId: `${pod}-1` },
    plans,
    inUse: new Set([parseAddr('10.7.0.0')]),
    elsewhere: [],
    isInhabited: () => false,
    isAbandoned: ({ node }) => node === 'gone',
  }
}

async function give(ipam: Ipam, pod: string, plans: readonly AddressPlan[]): Promise<string> {
  return (await ipam.assign(request(pod, plans))).map(formatAddr).join(' ')
}

async function take(ipam: Ipam, ...pods: readonly string[]): Promise<number> {
  return await ipam.release(({ pod }) => pods.includes(pod))
}

describe('addresses', () => {
  test('of both families come from blocks that the node has taken and announced', async () => {
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

  test('given back rest; a full block has another one taken, a full pool ends the rest', async () => {
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

  test("of the node's own range are nobody else's business", async () => {
    const world = new World()
    const plan: AddressPlan[] = [{ kind: 'range', range: parseCidr('10.7.0.0/30'), ref: 'Pod/default/web' }]
    const ipam = world.ipam('n1')
    expect(await give(ipam, 'a', plan)).toBe('10.7.0.1')
    expect(await give(world.ipam('n1'), 'a', plan)).toBe('10.7.0.1')
    expect(world.shared.blocks.size + world.shared.announced.size).toBe(1)
    for (const pod of ['b', 'c']) await give(ipam, pod, plan)
    await expect(give(ipam, 'e', plan)).rejects.toThrow('all addresses of 10.7.0.0/30 are in use')
  })

  test('that are asked for are given to one pod, on the node that has their block', async () => {
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

  test('are of what a pool or the cluster has left of a block, nothing beside it', async () => {
    const world = new World()
    const ipam = world.ipam('n1')
    const range = (text: string): AddressPlan[] => [{ kind: 'range', range: parseCidr(text), ref: 'Pod/default/web' }]
    expect(await give(ipam, 'a', range('10.7.0.0/28'))).toBe('10.7.0.1')
    expect(await give(ipam, 'b', range('10.7.0.8/30'))).toBe('10.7.0.8')
    // what both blocks have is given once, whichever is asked
    const given = [await give(ipam, 'c', range('10.7.0.0/30')), await give(ipam, 'd', range('10.7.0.0/30'))]
    expect(given).toEqual(['10.7.0.2', '10.7.0.3'])
    await expect(give(ipam, 'e', range('10.7.0.0/30'))).rejects.toThrow('all addresses of 10.7.0.0/30 are in use')
    await take(ipam, 'b')
    world.now += REST_MS
    expect(await give(ipam, 'f', range('10.7.0.0/28'))).toBe('10.7.0.4')
    const smaller = pools(poolOf('10.0.0.0/31', 31))
    expect(await give(ipam, 'g', pools(poolOf('10.0.0.0/30', 30)))).toBe('10.0.0.0')
    expect(await give(ipam, 'h', smaller)).toBe('10.0.0.1')
    await expect(give(ipam, 'i', smaller)).rejects.toThrow('no address is free, and no block')
  })

  test("are not in another node's block of another size: a pool that was made anew may have other ones", async () => {
    const world = new World()
    const [one, two] = [world.ipam('n1'), world.ipam('n2')]
    const given = []
    for (const pod of ['a', 'b', 'c', 'd']) given.push(await give(one, pod, pools(FOUR)))
    const n1: Node = {
      ...{ kind: 'Node', namespace: '', name: 'n1', addresses: [], podCIDRs: [FOUR.cidr], zone: undefined, labels: new Map(), subnets: [] },
      blocks: world.shared.announced.get('n1') ?? [],
    }
    const elsewhere = rangesElsewhere({ nodes: new Map([['n1', n1]]) }, 'n2', false)
    const second = async (pod: string, plans: readonly AddressPlan[]): Promise<string> =>
      (await two.assign({ ...request(pod, plans), elsewhere })).map(formatAddr).join(' ')
    const smaller = poolOf('10.0.0.0/28', 31)
    for (let pod = 0; pod < 12; pod++) given.push(await second(`e${pod}`, pools(smaller)))
    expect(new Set(given).size).toBe(16)
    await expect(second('f', pools(smaller))).rejects.toThrow('no address is free')
    const fixed: AddressPlan[] = [{ kind: 'fixed', addr: parseAddr(given[0] ?? ''), pool: smaller, ref: 'Pod/default/web' }]
    await expect(second('f', fixed)).rejects.toThrow('of which some node has')
  })

  test('who asks again has its address in whatever block it is', async () => {
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

  test('blocks that nobody needs go back, but for one', async () => {
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

  test('of each family stays one, in whatever order pools are', async () => {
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
  ])('all of them when their pool %s', async (_, left) => {
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
    expect(taken.map(formatAddr)).toEqual(['10.0.0.0'])
    // its Node is made anew
    world.shared.announced.delete('n1')
    await one.tidy([single], [])
    expect(world.shared.announced.get('n1')).toEqual([])
  })

  test('what the others have been made to forget is said again', async () => {
    const world = new World()
    const ipam = world.ipam('n1')
    await give(ipam, 'a', pools(FOUR))
    const announced = world.shared.announced.get('n1') ?? []
    expect(announced).toHaveLength(1)
    // a Node that was made anew
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
    const there = [
      podOf('old', '10.0.0.2', 'n0'),
      podOf('own', '10.0.0.5', 'n1'),
      { ...podOf('host', '10.0.0.6', 'n0'), hostNetwork: true },
    ]
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

  test('by address: what is still in use stays with its holder', async () => {
    const world = new World()
    const ipam = world.ipam('n1')
    const [a, b] = [await give(ipam, 'a', pools(FOUR)), await give(ipam, 'b', pools(FOUR))]
    expect(await ipam.release((_, addr) => formatAddr(addr) !== a)).toBe(1)
    expect([a, b]).toEqual([await give(ipam, 'a', pools(FOUR)), b])
    expect(world.held()).toHaveLength(1)
  })

  test.each<readonly Fate[]>([['lost'], ['done', 'lost'], ['done', 'done', 'lost']])(
    'one that dies while it gives blocks back has announced none that is anybody else’s by then: %j',
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
})

const NODES = ['n1', 'n2', 'n3']
const step = fc.record({
  node: fc.constantFrom(...NODES),
  pod: fc.integer({ min: 0, max: 4 }),
  take: fc.boolean(),
  later: fc.integer({ min: 0, max: 600 }),
})

test('nodes that work at the same time never give one address twice', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), fc.integer({ min: 1, max: 5 }), async (steps, together) => {
      const world = new World()
      const ipams = new Map(NODES.map((node) => [node, world.ipam(node)]))
      const has = new Map<string, string>()
      for (let at = 0; at < steps.length; at += together) {
        const round = steps.slice(at, at + together)
        await Promise.all(
          round.map(async ({ node, pod, take: isTake, later }) => {
            world.now += later
            const [name, ipam] = [`${node}-${pod}`, ipams.get(node)]
            if (ipam === undefined) return
            if (isTake) {
              await take(ipam, name)
              has.delete(name)
            } else {
              const given = await give(ipam, name, pools(FOUR)).catch(() => undefined)
              if (given !== undefined) has.set(name, given)
            }
          }),
        )
      }
      const held = world.held().map((line) => line.split(' ')[1])
      expect(new Set(held).size).toBe(held.length)
      expect(new Set(has.values()).size).toBe(has.size)
    }),
    { numRuns: 200 },
  )
})

test('an agent that dies at any point leaves nothing behind that the next one does not find', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ step, fates: fc.array(fc.constantFrom<Fate>('done', 'refused', 'lost'), { maxLength: 4 }) }), { maxLength: 20 }),
      async (lives) => {
        const world = new World()
        const known = new Map<string, string>()
        for (const {
          step: { node, pod, take: isTake, later },
          fates,
        } of lives) {
          world.now += later
          const left = [...fates]
          const name = `${node}-${pod}`
          const mortal = world.ipam(node, () => left.shift() ?? 'done')
          try {
            if (isTake) {
              known.delete(name)
              await take(mortal, name)
            } else {
              const given = await give(mortal, name, pools(FOUR, SIX))
              expect(known.get(name) ?? given).toBe(given)
              known.set(name, given)
            }
          } catch (thrown) {
            if (!(thrown instanceof Dead) && !(thrown instanceof Error && thrown.message.includes('no address'))) throw thrown
          }
          // the one after it: only what is known stays
          await world.ipam(node).release((holder) => holder.pod.startsWith(`${node}-`) && !known.has(holder.pod))
        }
        const heldBy = world
          .held()
          .map((line) => line.split(' ')[0])
          .sort()
        expect(heldBy).toEqual([...known.keys()].flatMap((name) => [name, name]).sort())
        const given: readonly (Addr | string)[] = [...known.values()].flatMap((both) => both.split(' '))
        expect(new Set(given).size).toBe(given.length)
      },
    ),
    { numRuns: 300 },
  )
})
