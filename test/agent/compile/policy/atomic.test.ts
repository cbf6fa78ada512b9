// SPDX-License-Identifier: Apache-2.0
/** While policies, pods and network sets change, every packet is judged by the rules before or by those after.
 * Layer: test. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { rowKey } from '#agent/compile/policy/tables.ts'
import type { PolicyRow, PolicyStep } from '#agent/compile/policy/tables.ts'
import type { KubeObject } from '#lib/model/snapshot.ts'
import type { Packet } from '#lib/policy/packet.ts'
import { dense, HOST, isSent } from './dense.ts'
import type { Change } from './dense.ts'
import { Follower } from './follower.ts'

const RUNS = Number(process.env['RUNS'] ?? 20)
const TIMEOUT = Math.max(60_000, RUNS * 200)
const NODE = 'n1'
const { world, change, setChange, batch, hostWorld, hostBatch, packets: PACKETS } = dense(true, [80])

/** as a host asks several sets of each */
const SOME = PACKETS.filter((_, at) => at % 3 === 0)

function judgeAll(follower: Follower, packets: readonly Packet[]): readonly (string | undefined)[] {
  const pods = [...follower.store.snapshot.pods.values()].filter(({ nodeName }) => nodeName === NODE)
  const waiting = pods.flatMap(({ podIPs }) => podIPs.filter((addr) => follower.tables.end(addr) === undefined))
  return packets.flatMap((one) =>
    (['ingress', 'egress'] as const).map((direction) =>
      // a new pod has no traffic in either direction before it has its row
      waiting.includes(one.src) || waiting.includes(one.dst) ? undefined : follower.action(one, { direction }),
    ),
  )
}

/** What passes the host's device, and what the host itself sends and receives: what untracked rules leave open, the
 * tracked ones end. */
function judgeAtHost(follower: Follower, packets: readonly Packet[]): readonly string[] {
  return packets.flatMap((packet) =>
    (['ingress', 'egress'] as const).flatMap((direction) =>
      [false, true].map((ofHost) => {
        const [untracked, tracked] = follower.hostActions(HOST, { direction, packet, before: packet, ofHost })
        return untracked === 'open' ? `tracked ${tracked}` : `untracked ${untracked}`
      }),
    ),
  )
}

/** Rows of identities and sets that nothing refers to cannot be seen: only those of addresses and those that go need
 * a look. */
function isSeen(step: PolicyStep, row: PolicyRow): boolean {
  return step.kind === 'delete' || row.table === 'ends' || row.table === 'nets' || row.table === 'hosts'
}

type Judge = (follower: Follower, packets: readonly Packet[]) => readonly (string | undefined)[]

function checkRowByRow(judge: Judge, objects: readonly KubeObject[], changes: readonly Change[]): void {
  const packets = judge === judgeAll ? PACKETS : SOME
  const follower = new Follower(NODE)
  follower.put(objects)
  for (const { put, gone } of changes) {
    const before = judge(follower, packets)
    const old = follower.podAddrs
    const seen: ReturnType<Judge>[] = []
    for (const step of follower.change(put, gone))
      if (step.kind !== 'epoch') {
        expect(new Set(step.rows.map(rowKey)).size, 'distinct rows').toBe(step.rows.length)
        for (const row of step.rows) {
          follower.tables.write(row, step.kind === 'delete')
          if (isSeen(step, row)) seen.push(judge(follower, packets))
        }
      }
    const after = judge(follower, packets)
    const isSeenAt = packets.map((packet) => put.length + gone.length === 1 || isSent(packet, old, follower.podAddrs))
    const ofEach = after.length / packets.length
    for (const verdicts of seen)
      for (const [at, verdict] of verdicts.entries()) {
        const packet = Math.floor(at / ofEach)
        if (verdict !== undefined && verdict !== before[at] && verdict !== after[at] && isSeenAt[packet] === true)
          expect({ packet: packets[packet], verdict }).toBe('as before or as after')
      }
  }
}

test.each<readonly [string, { objects: fc.Arbitrary<readonly KubeObject[]>; one: fc.Arbitrary<Change>; judge: Judge }]>([
  ['a policy or a pod changes', { objects: world, one: change, judge: judgeAll }],
  ['a network set changes', { objects: world, one: setChange, judge: judgeAll }],
  ['several of them change at once', { objects: world, one: batch, judge: judgeAll }],
  ['several change at once, at a host endpoint', { objects: hostWorld, one: hostBatch, judge: judgeAtHost }],
])('%s, row by row', { timeout: TIMEOUT }, (_, { objects, one, judge }) => {
  const changes = fc.array(one, { minLength: 1, maxLength: 5 })
  fc.assert(
    fc.property(objects, changes, (some, then) => {
      checkRowByRow(judge, some, then)
    }),
    { numRuns: judge === judgeAtHost ? Math.ceil(RUNS / 5) : RUNS },
  )
})
