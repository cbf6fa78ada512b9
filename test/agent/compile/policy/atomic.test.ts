// SPDX-License-Identifier: Apache-2.0
/** While one policy, pod or network set changes, every packet is judged by the rules before or by those after. Layer: test. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { PolicyRow, PolicyStep } from '#agent/compile/policy/tables.ts'
import type { KubeObject } from '#lib/model/snapshot.ts'
import { dense } from './dense.ts'
import type { Change } from './dense.ts'
import { Follower } from './follower.ts'

const RUNS = Number(process.env['RUNS'] ?? 150)
const TIMEOUT = Math.max(60_000, RUNS * 200)
const NODE = 'n1'
const { world, oneSided, change, setChange, packets: PACKETS } = dense(true, [80])

function judgeAll(follower: Follower): readonly string[] {
  return PACKETS.flatMap((one) => (['ingress', 'egress'] as const).map((direction) => follower.action(one, { direction })))
}

/** Rows of identities and sets that nothing refers to cannot be seen: only those of addresses and those that go need a look. */
function isSeen(step: PolicyStep, row: PolicyRow): boolean {
  return step.kind === 'forget' || row.table === 'ends' || row.table === 'nets'
}

function checkRowByRow(objects: readonly KubeObject[], changes: readonly Change[]): void {
  const follower = new Follower(NODE)
  follower.put(objects)
  for (const { put, gone } of changes) {
    const before = judgeAll(follower)
    const seen: (readonly string[])[] = []
    for (const step of follower.change(put, gone))
      if (step.kind !== 'epoch')
        for (const row of step.rows) {
          follower.tables.write(row, step.kind === 'forget')
          if (isSeen(step, row)) seen.push(judgeAll(follower))
        }
    const after = judgeAll(follower)
    for (const verdicts of seen)
      for (const [at, verdict] of verdicts.entries())
        if (verdict !== before[at] && verdict !== after[at]) expect({ packet: PACKETS[at >> 1], verdict }).toBe('as before or as after')
  }
}

test.each([
  ['a policy or a pod', world, change],
  ['a network set', oneSided, setChange],
])('%s changes, row by row', { timeout: TIMEOUT }, (_, objects, one) => {
  fc.assert(fc.property(objects, fc.array(one, { minLength: 1, maxLength: 5 }), checkRowByRow), { numRuns: RUNS })
})
