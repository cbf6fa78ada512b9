// SPDX-License-Identifier: Apache-2.0
/** Random worlds in the loaded programs: they say what the evaluator says, by the rule that the tables name, also in
 * the middle of a change. Layer: test. */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Addr } from '#lib/base/ip.ts'
import { hasOwnAddresses } from '#lib/model/pod.ts'
import type { Pod } from '#lib/model/pod.ts'
import type { KubeObject } from '#lib/model/snapshot.ts'
import type { Packet } from '#lib/policy/packet.ts'
import { NODE, object, packet } from '../../../agent/compile/policy/arbitrary.ts'
import { dense, isSent } from '../../../agent/compile/policy/dense.ts'
import type { Change } from '../../../agent/compile/policy/dense.ts'
import { longLine } from '../../../agent/compile/policy/long.ts'
import { Follower, Oracle } from '../../../agent/compile/policy/follower.ts'
import { KernelNode } from '../../../oracle/kernel-node.ts'

/** RUNS=300 for a long look. */
const RUNS = Number(process.env['RUNS'] ?? 15)
const TIMEOUT = Math.max(120_000, RUNS * 5000)

const loaded: KernelNode[] = []
beforeAll(async () => {
  loaded.push(await KernelNode.load())
})
afterAll(() => loaded.forEach((node) => node.close()))

/** With nothing in its maps. */
async function emptyNode(): Promise<KernelNode> {
  const [node] = loaded
  if (node === undefined) throw new Error('not loaded')
  await node.clear()
  return node
}

interface Verdicts {
  readonly egress: boolean
  readonly ingress: boolean
}

/** Of its ends that are pods of the node. */
function byPrograms(node: KernelNode, follower: Follower, one: Packet): Verdicts {
  const [leaves, comes] = [isLocal(follower, one.src), isLocal(follower, one.dst)]
  const verdicts = { egress: !leaves || node.egress(one), ingress: !comes || node.ingress(one) }
  if (leaves && comes) expect({ one, both: node.both(one) }).toEqual({ one, both: verdicts.egress && verdicts.ingress })
  return verdicts
}

function byRules(oracle: Oracle, one: Packet): Verdicts {
  const allows = (direction: 'ingress' | 'egress') => oracle.verdict(one, { direction }).endsWith(' allow')
  return { egress: allows('egress'), ingress: allows('ingress') }
}

function isLocal({ store, node }: Follower, addr: Addr): boolean {
  return [...store.snapshot.pods.values()].some((pod) => hasOwnAddresses(pod) && pod.nodeName === node && pod.podIPs.includes(addr))
}

const step = fc.record({ put: fc.array(object, { minLength: 1, maxLength: 12 }), gone: fc.array(object, { maxLength: 6 }) })
/** a pod always reaches itself */
const packets = fc.array(
  packet.filter(({ src, dst }) => src !== dst),
  { minLength: 10, maxLength: 40 },
)

test('programs say what the evaluator says, after every change', { timeout: TIMEOUT }, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 5 }), packets, async (steps, some) => {
      const node = await emptyNode()
      const follower = new Follower(NODE)
      for (const { put, gone } of steps) {
        node.take(follower.change(put, gone))
        const oracle = new Oracle(follower)
        for (const one of some) expect([one, byPrograms(node, follower, one)]).toEqual([one, byRules(oracle, one)])
      }
    }),
    { numRuns: RUNS * 20 },
  )
})

test.each([
  [3, 20],
  [80, 20],
  [600, 5],
  [1500, 3],
  [8000, 1],
])('lines of two times %i rules', { timeout: TIMEOUT }, async (length, share) => {
  const pods = dense(true).pods
  await fc.assert(
    fc.asyncProperty(longLine(length), pods, async ({ policies, packets: some }, objects) => {
      const node = await emptyNode()
      const follower = new Follower(NODE)
      node.take(follower.change([...policies, ...objects]))
      const oracle = new Oracle(follower)
      for (const ports of some)
        for (const [src, dst] of pairs(objects)) {
          const one = { ...ports, src, dst }
          expect([one, byPrograms(node, follower, one)]).toEqual([one, byRules(oracle, one)])
        }
    }),
    // such worlds have no end of smaller ones
    { numRuns: Math.ceil((RUNS * share) / 20), endOnFailure: true },
  )
})

/** The first to each of the others. */
function pairs([first, ...others]: readonly Pod[]): readonly (readonly [Addr, Addr])[] {
  return others.flatMap(({ podIPs }) => podIPs.flatMap((dst) => (first?.podIPs ?? []).map((src) => [src, dst] as const)))
}

/** Packets that differ in their port alone come in pairs. A pair with one verdict before and after must have one
 * verdict at every step. */
async function checkEveryStep(of: readonly Packet[], objects: readonly KubeObject[], changes: readonly Change[]): Promise<void> {
  const node = await emptyNode()
  const follower = new Follower(NODE)
  node.take(follower.change(objects))
  const judgeAll = () => of.map((one) => byPrograms(node, follower, one))
  let before = judgeAll()
  for (const { put, gone } of changes) {
    const old = follower.podAddrs
    const steps = follower.change(put, gone)
    const rows = new Set<Addr>()
    const seen = steps.map((one) => {
      node.take([one])
      if (one.kind !== 'epoch' && one.kind !== 'delete') for (const row of one.rows) if (row.table === 'ends') rows.add(row.key.addr)
      return { during: judgeAll(), waiting: [...follower.podAddrs].filter((addr) => !old.has(addr) && !rows.has(addr)) }
    })
    const after = judgeAll()
    const oracle = new Oracle(follower)
    expect(after).toEqual(of.map((one) => byRules(oracle, one)))
    const isOne = put.length + gone.length === 1
    const isAsked = of.map((one) => isOne || isSent(one, old, follower.podAddrs))
    for (const { during, waiting } of seen) {
      // nor does a new pod of the node send anything before it has its row: its ADD waits for that
      const sends = of.map(({ src }, at) => isAsked[at] === true && !(waiting.includes(src) && isLocal(follower, src)))
      expect(broken({ before, during, after, isAsked: sends })).toEqual([])
    }
    before = after
  }
}

interface Change3 {
  readonly before: readonly Verdicts[]
  readonly during: readonly Verdicts[]
  readonly after: readonly Verdicts[]
  readonly isAsked: readonly boolean[]
}

/** Places of verdicts that are neither the old nor the new, and of pairs that were and are alike and are not. */
function broken({ before, during, after, isAsked }: Change3): readonly string[] {
  return during.flatMap((verdicts, at) =>
    (['egress', 'ingress'] as const).flatMap((side) => {
      if (isAsked[at] !== true) return []
      const [was, is] = [before[at]?.[side], after[at]?.[side]]
      const beside = at ^ 1
      const alike = was === before[beside]?.[side] && is === after[beside]?.[side]
      if (verdicts[side] !== was && verdicts[side] !== is) return [`${at} ${side}: neither as before nor as after`]
      return alike && verdicts[side] !== during[beside]?.[side] ? [`${at} ${side}: not as its twin`] : []
    }),
  )
}

describe.each([
  ['IPv4', dense(true)],
  ['IPv6', dense(false)],
])(
  '%s: in the middle of a change packets are judged as before or as after',
  (_family, { world, change, setChange, batch, packets: all }) => {
    test.each([
      ['a policy or a pod', world, change],
      ['a network set', world, setChange],
      ['several of them at once', world, batch],
    ])('a change of %s', { timeout: TIMEOUT }, async (_what, objects, one) => {
      const changes = fc.array(one, { minLength: 1, maxLength: 3 })
      await fc.assert(
        fc.asyncProperty(objects, changes, (some, then) => checkEveryStep(all, some, then)),
        { numRuns: RUNS },
      )
    })
  },
)
