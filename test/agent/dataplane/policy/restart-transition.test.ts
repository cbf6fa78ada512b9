// SPDX-License-Identifier: Apache-2.0
/** An agent that comes back to another world: row by row, every packet is judged as it was or as it is to be.
 * Layer: test. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { PolicyRowOf, PolicyStep } from '#agent/compile/policy/tables.ts'
import { restartTransition, type KernelPolicy } from '#agent/dataplane/policy/restart-transition.ts'
import type { PolicyTables } from '#agent/policy/table-rows.ts'
import type { Addr } from '#lib/base/ip.ts'
import type { KubeObject } from '#lib/model/snapshot.ts'
import type { Packet } from '#lib/policy/packet.ts'
import { dense, isSent, type Dense } from '../../compile/policy/dense.ts'
import { Follower } from '../../compile/policy/follower.ts'

const NODE = 'n1'
const WORLDS: readonly (readonly [string, Dense])[] = [
  ['IPv4', dense(true, [80])],
  ['IPv6', dense(false, [80])],
]
const RUNS = Number(process.env['RUNS'] ?? 100)
const TIMEOUT = Math.max(60_000, RUNS * 200)

function compiled(objects: readonly KubeObject[]): { readonly steps: readonly PolicyStep[]; readonly tables: PolicyTables } {
  const follower = new Follower(NODE)
  const steps = follower.change(objects)
  follower.tables.apply(steps)
  return { steps, tables: follower.tables }
}

function inKernel(tables: PolicyTables): KernelPolicy {
  const rows = [...tables.rows.values()]
  const ends = rows.flatMap((row) => (row.table === 'ends' ? [[row.key.addr, row.value] as const] : []))
  return {
    bits: () => rows.filter((row): row is PolicyRowOf<'bits'> => row.table === 'bits'),
    nets: rows.filter((row): row is PolicyRowOf<'nets'> => row.table === 'nets'),
    ends: new Map(ends),
  }
}

function judgeAll(tables: PolicyTables, packets: readonly Packet[]): readonly string[] {
  const follower = new Follower(NODE)
  for (const row of tables.rows.values()) follower.tables.write(row, false)
  return packets.flatMap((one) => (['ingress', 'egress'] as const).map((direction) => follower.action(one, { direction })))
}

/** Not every pod is there. */
function someOf({ oneSided }: Dense): Dense['oneSided'] {
  return fc
    .tuple(oneSided, fc.subarray([0, 1, 2, 3, 4], { minLength: 2 }))
    .map(([objects, kept]) => objects.filter(({ kind }, at) => kind !== 'Pod' || kept.includes(at)))
}

function podsOf(objects: readonly KubeObject[]): ReadonlySet<Addr> {
  return new Set(objects.flatMap((object) => (object.kind === 'Pod' ? object.podIPs : [])))
}

function checkRowByRow(all: readonly Packet[], old: readonly KubeObject[], now: readonly KubeObject[]): void {
  const packets = all.filter((one) => isSent(one, podsOf(old), podsOf(now)))
  const { tables } = compiled(old)
  const whole = compiled(now)
  const known = new Set(tables.rows.keys())
  const [before, after] = [judgeAll(tables, packets), judgeAll(whole.tables, packets)]
  for (const step of restartTransition(whole.steps, inKernel(tables))) {
    if (step.kind === 'epoch') continue
    for (const row of step.rows) {
      tables.write(row, step.kind === 'forget')
      if (step.kind === 'learn') continue
      for (const [at, verdict] of judgeAll(tables, packets).entries())
        if (verdict !== before[at] && verdict !== after[at]) expect({ packet: packets[at >> 1], verdict }).toBe('as before or as after')
    }
  }
  // what is wanted, and of what was there only what a sweep takes
  for (const [key, row] of whole.tables.rows) expect(tables.rows.get(key)).toEqual(row)
  expect([...tables.rows.keys()].filter((key) => !whole.tables.rows.has(key) && !known.has(key))).toEqual([])
}

test.each(WORLDS)('row by row, %s', { timeout: TIMEOUT }, (_, world) => {
  const some = someOf(world)
  fc.assert(
    fc.property(some, some, (old, now) => {
      checkRowByRow(world.packets, old, now)
    }),
    { numRuns: RUNS },
  )
})

test.each(WORLDS)('the same world again: the same steps, %s', (_, { oneSided }) => {
  fc.assert(
    fc.property(oneSided, (objects) => {
      const { steps, tables } = compiled(objects)
      expect(restartTransition(steps, inKernel(tables))).toBe(steps)
    }),
    { numRuns: 20 },
  )
})
