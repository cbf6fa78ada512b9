// SPDX-License-Identifier: Apache-2.0
/** Addresses for pods of many nodes, some of which die in the middle of it. Layer: test. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Addr } from '#lib/base/ip.ts'
import { FOUR, SIX, World, give, pools, take } from '../../support/address-world.ts'
import { Dead, type Fate } from '../../support/fakes/memory-blocks.ts'

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
