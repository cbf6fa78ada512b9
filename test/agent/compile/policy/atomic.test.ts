// SPDX-License-Identifier: Apache-2.0
/** While one policy, pod or network set changes, every packet is judged by the rules before or by those after. Layer: test.
 *
 * The worlds are small and dense, so that a wrong order of rows shows: few labels, prefixes within prefixes, short policies. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { PolicyRow, PolicyStep } from '#agent/compile/policy/tables.ts'
import { parseAddr, parseCidr } from '#lib/base/ip.ts'
import type { Pod } from '#lib/model/pod.ts'
import { ANYWHERE } from '#lib/model/policy.ts'
import type { NetworkSet, Policy, Side } from '#lib/model/policy.ts'
import { ALL, equals } from '#lib/model/selector.ts'
import type { KubeObject } from '#lib/model/snapshot.ts'
import type { Packet } from '#lib/policy/packet.ts'
import { Follower } from './follower.ts'
import { ruleAt } from './scale.ts'

const RUNS = Number(process.env['RUNS'] ?? 150)
const TIMEOUT = Math.max(60_000, RUNS * 200)
const NODE = 'n1'

const app = fc.constantFrom('1', '2', '3')
const selector = fc.oneof({ weight: 3, arbitrary: app.map((value) => equals('app', value)) }, fc.constant(ALL))
const nets = fc
  .subarray(['10.0.0.0/8', '10.0.0.0/24', '10.0.0.2/32', '192.0.2.0/24', '192.0.2.128/25', '0.0.0.0/0'], { minLength: 1, maxLength: 3 })
  .map((all) => all.map(parseCidr))

const side: fc.Arbitrary<Side> = fc.oneof(
  { weight: 3, arbitrary: selector.map((one) => ({ ...ANYWHERE, selector: one })) },
  { weight: 3, arbitrary: nets.map((some) => ({ ...ANYWHERE, nets: some })) },
  nets.map((some) => ({ ...ANYWHERE, notNets: some })),
  selector.map((one) => ({ ...ANYWHERE, notSelector: one })),
)
const nothing = fc.constant(ANYWHERE)
const eitherEnd = fc.oneof({ weight: 4, arbitrary: nothing }, side)
const action = fc.constantFrom('allow' as const, 'allow' as const, 'deny' as const, 'pass' as const)

const rules = (direction: 'ingress' | 'egress', own: fc.Arbitrary<Side>) =>
  fc.array(fc.record({ action, peer: side, own }), { minLength: 1, maxLength: 3 }).map((all) =>
    all.map(({ action: what, peer, own: end }, at) => {
      const ends = direction === 'ingress' ? { source: peer, destination: end } : { source: end, destination: peer }
      return ruleAt(at, { action: what, ...ends })
    }),
  )

const policyWith = (own: fc.Arbitrary<Side>): fc.Arbitrary<Policy> =>
  fc
    .record({
      name: fc.constantFrom('a', 'b', 'c'),
      tier: fc.constantFrom('default', 'adminnetworkpolicy'),
      subject: selector,
      ingress: rules('ingress', own),
      egress: fc.option(rules('egress', own), { nil: undefined }),
    })
    .map((of) => ({ ...of, kind: 'GlobalNetworkPolicy', namespace: '', order: 1, staged: undefined, scope: 'normal' }))

const policy = policyWith(eitherEnd)

/** One of two network sets. */
const networkSet: fc.Arbitrary<NetworkSet> = fc
  .record({ name: fc.constantFrom('s', 't'), value: app, nets })
  .map(({ value, ...of }) => ({ ...of, kind: 'GlobalNetworkSet', namespace: '', labels: new Map([['app', value]]) }))

const PODS = ['10.0.0.1', '10.0.0.2', '10.0.0.3', '10.0.1.1', '10.0.1.2']
const STRANGERS = ['192.0.2.1', '192.0.2.200', '203.0.113.1', '10.0.0.77', '10.9.9.9']

function pod(ip: string, value: string): Pod {
  return {
    kind: 'Pod',
    namespace: 'x',
    name: ip,
    nodeName: ip === '10.0.1.2' ? 'n2' : NODE,
    podIPs: [parseAddr(ip)],
    hostNetwork: false,
    phase: 'Running',
    terminating: false,
    labels: new Map([['app', value]]),
    serviceAccount: 'default',
    ports: [],
  }
}

const anyPod = fc.tuple(fc.constantFrom(...PODS), app).map(([ip, value]) => pod(ip, value))
const pods = fc.tuple(app, app, app, app, app).map((apps) => PODS.map((ip, at) => pod(ip, apps[at] ?? '1')))
const world: fc.Arbitrary<readonly KubeObject[]> = fc
  .tuple(pods, fc.array(policy, { maxLength: 3 }), fc.array(networkSet, { maxLength: 2 }))
  .map((parts) => parts.flat())
/** Both ends of a packet may be in a set that changes: only where no rule asks about both it is before or after. */
const oneSided: fc.Arbitrary<readonly KubeObject[]> = fc
  .tuple(pods, fc.array(policyWith(nothing), { minLength: 1, maxLength: 3 }), fc.array(networkSet, { maxLength: 2 }))
  .map((parts) => parts.flat())
type Change = { readonly put: readonly KubeObject[]; readonly gone: readonly KubeObject[] }
const change: fc.Arbitrary<Change> = fc.oneof(
  { weight: 3, arbitrary: policy.map((one) => ({ put: [one], gone: [] })) },
  { weight: 2, arbitrary: anyPod.map((one) => ({ put: [one], gone: [] })) },
  policy.map((one) => ({ put: [], gone: [one] })),
  anyPod.map((one) => ({ put: [], gone: [one] })),
)

const setChange: fc.Arbitrary<Change> = networkSet.chain((one) =>
  fc.constantFrom({ put: [one], gone: [] }, { put: [one], gone: [] }, { put: [], gone: [one] }),
)

const PACKETS: readonly Packet[] = [...PODS, ...STRANGERS].flatMap((src) =>
  [...PODS, ...STRANGERS]
    .filter((dst) => dst !== src && (PODS.includes(src) || PODS.includes(dst)))
    .map((dst) => ({ src: parseAddr(src), dst: parseAddr(dst), protocol: 6, sport: 40_000, dport: 80, icmp: undefined })),
)

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
