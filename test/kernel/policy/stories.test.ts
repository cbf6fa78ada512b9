// SPDX-License-Identifier: Apache-2.0
/** Whichever of a flow's packets asks, it asks the same rules: those of its first one. Layer: test. */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { DIRECTIONS, type Direction, type Policy, type Rule, type Scope } from '#lib/model/policy.ts'
import { HOST, UNDERLAY } from '../../../testkit/packets/policy.ts'
import { HELPERS, packetRunner, setUpNamespace, type Features, type PacketRunner } from '../../../testkit/packets/runner.ts'
import type { Step } from '../../../testkit/packets/case.ts'
import { netSide, policy, portSide } from '../packets/policy/policies.ts'
import { has, stepOf, storiesOf, type Kind, type Passage, type Story } from '../packets/policy/stories.ts'
import { A_WHILE, NAT_PORT, NODE_PORT, families, type Family } from '../../../testkit/packets/cluster.ts'

/** RUNS=300 for a long look. */
const RUNS = Number(process.env['RUNS'] ?? 10)
const KINDS: readonly Kind[] = ['tcp', 'udp', 'sctp', 'ping']
const NEWEST: Features = { redirectPeer: true, redirectNeigh: true, coarseClock: true, jiffies: true, netnsCookies: true }
const OLDEST: Features = { redirectPeer: false, redirectNeigh: false, coarseClock: false, jiffies: false, netnsCookies: false }

interface Slot {
  readonly of: string
  readonly scope: Scope
  readonly direction: Direction
}

const SLOTS: readonly Slot[] = [
  ...['pod', 'second', 'masked'].flatMap((of) => DIRECTIONS.map((direction) => ({ of, scope: 'normal' as const, direction }))),
  ...[HOST, UNDERLAY].flatMap((of) => [
    { of, scope: 'preDNAT' as const, direction: 'ingress' as const },
    ...(['forward', 'normal'] as const).flatMap((scope) => DIRECTIONS.map((direction) => ({ of, scope, direction }))),
  ]),
]

function policyAt({ of, scope, direction }: Slot, rules: readonly Partial<Rule>[]): Policy {
  return policy(`${of} ${scope} ${direction}`, { of, scope, [direction]: rules })
}

/** Whatever has no rules here lets everything pass, but host endpoints. */
const OPEN: readonly Policy[] = SLOTS.filter(({ of, scope }) => (of === HOST || of === UNDERLAY) && scope === 'normal').map((slot) =>
  policyAt(slot, [{}]),
)

const PORTS = [80, 443, 8080, 43_000, NAT_PORT, NODE_PORT]
const ADDRS = [
  'client',
  'directClient',
  'node',
  'otherNode',
  'pod',
  'secondPod',
  'maskedPod',
  'remotePod',
  'overlayPod',
  'routedPod',
  'vip',
  'stranger',
] as const
const net = fc.constantFrom(...ADDRS).map((name) => netSide(...families.map((f) => `${f[name]}/${f.v4 ? 32 : 128}`)))
const port = fc.constantFrom(...PORTS).map((number) => portSide(number))
const tcpOrUdp = { protocols: [6, 17] }
const match: fc.Arbitrary<Partial<Rule>> = fc.oneof(
  fc.record({ source: net }),
  fc.record({ destination: net }),
  port.map((source) => ({ ...tcpOrUdp, source })),
  port.map((destination) => ({ ...tcpOrUdp, destination })),
  fc.constantFrom({ protocols: [6] }, { protocols: [17] }),
)
const rule = fc
  .record({ match, action: fc.constantFrom('allow' as const, 'deny' as const) })
  .map(({ match: of, action }) => ({ ...of, action }))
/** Most worlds let most things pass: a flow is to meet one rule that does not. */
const rules = fc
  .record({ some: fc.array(rule, { maxLength: 2 }), open: fc.integer({ min: 0, max: 9 }) })
  .map(({ some, open }): readonly Partial<Rule>[] => (open > 0 ? [...some, {}] : some))
const world: fc.Arbitrary<readonly Policy[]> = fc.tuple(...SLOTS.map(() => fc.option(rules, { freq: 2 }))).map((all) =>
  all.flatMap((given, index) => {
    const slot = SLOTS[index]
    const isNeeded = slot !== undefined && OPEN.some(({ name }) => name === policyAt(slot, []).name)
    return slot === undefined || (given === null && !isNeeded) ? [] : [policyAt(slot, given ?? [{}])]
  }),
)

const opened: PacketRunner[] = []
beforeAll(() => setUpNamespace())

/** Throws when the packets end otherwise than they can by rules. */
function verdict(policies: readonly Policy[], given: Story['given'], steps: readonly Step[]): 'allow' | 'deny' {
  const [runner] = opened
  const wrong = runner?.run({ name: '', given: { ...given, policies }, steps })
  if (wrong === undefined) return 'allow'
  if (/: drop instead of (pass|redirect)/.test(wrong)) return 'deny'
  throw new Error(wrong)
}

interface Told {
  readonly f: Family
  readonly kind: Kind
  readonly story: Story
}

/** What one end sends, at all the hooks that it passes; `change` comes before. */
function sent(
  { f, kind, story }: Told,
  who: 'asks' | 'answers',
  of: { readonly flags: string; readonly change?: Partial<Step> },
): readonly Step[] {
  return story[who].map((passage: Passage, index) => ({
    ...stepOf(f, kind, { passage, flags: of.flags, say: `${story.name}, ${kind}, ${who} ${of.flags}, hook ${index}` }),
    ...(index === 0 ? of.change : {}),
  }))
}

/** A flow that begins by rules ends by no closer look while these are the same; one that does not, goes on by none
 * of its packets when they come. */
function check(told: Told, policies: readonly Policy[]): void {
  const { given } = told.story
  const first = sent(told, 'asks', { flags: 'S' })
  const again = { policies }
  const title = `${told.story.name}, ${told.kind}, ${told.f.name}`
  const isAsked = verdict(policies, given, first)
  const later: Readonly<Record<string, readonly Step[]>> = {
    'the first answer': sent(told, 'answers', { flags: 'SA', change: again }),
    'a later answer': [
      ...sent(told, 'answers', { flags: 'SA' }),
      ...sent(told, 'asks', { flags: 'A' }),
      ...sent(told, 'answers', { flags: 'PA', change: again }),
    ],
    'the next packet': [...sent(told, 'answers', { flags: 'SA' }), ...sent(told, 'asks', { flags: 'A', change: again })],
    'a packet after a while': sent(told, 'asks', { flags: 'A', change: { ...again, age: A_WHILE } }),
    'an answer after a while': sent(told, 'answers', { flags: 'SA', change: { ...again, age: A_WHILE } }),
  }
  for (const [what, steps] of Object.entries(later)) {
    if (!steps.some(({ policies: changed }) => changed !== undefined)) continue
    const then = verdict(isAsked === 'allow' ? policies : OPEN, given, [...first, ...steps])
    expect(`${title}: ${what}: ${then}`).toBe(`${title}: ${what}: ${isAsked}`)
  }
  if (isAsked === 'allow' || told.kind === 'ping' || told.story.asks.length > 1) return
  // and nothing but a new beginning, which is denied, comes of it
  const denied = (steps: readonly Step[]) => steps.map((step): Step => ({ ...step, action: 'drop' }))
  const refused = [
    ...denied(sent(told, 'asks', { flags: 'A', change: again })),
    ...denied(sent(told, 'answers', { flags: 'PA' })),
    ...denied(sent(told, 'answers', { flags: 'SA' })),
    ...denied(sent(told, 'asks', { flags: 'A' })),
    ...denied(sent(told, 'asks', { flags: 'S' })),
    ...denied(sent(told, 'answers', { flags: 'A' })),
  ]
  expect([title, verdict(OPEN, given, [...first, ...refused])]).toEqual([title, 'allow'])
}

/** Each place by itself, and then all together. */
function checkAll(f: Family, story: Story): void {
  const kinds = KINDS.filter((kind) => has(story, kind))
  for (const kind of kinds) {
    const told = { f, kind, story }
    const both = [...sent(told, 'asks', { flags: 'S' }), ...sent(told, 'answers', { flags: 'SA' })]
    expect(verdict(OPEN, story.given, both)).toBe('allow')
  }
  for (const slot of SLOTS) {
    const closed = policyAt(slot, [{ action: 'deny' }])
    check({ f, kind: 'tcp', story }, [...OPEN.filter(({ name }) => name !== closed.name), closed])
  }
  const together = fc.property(fc.constantFrom(...kinds), world, (kind, policies) => check({ f, kind, story }, policies))
  fc.assert(together, { numRuns: RUNS })
}

describe.each([
  { title: 'with rules of the node', features: NEWEST, stubs: [], knobs: {} },
  { title: 'with rules of pods alone', features: OLDEST, stubs: Object.values(HELPERS), knobs: { host_policy: 0, untracked: 0 } },
])('$title', ({ features, stubs, knobs }) => {
  beforeAll(async () => {
    opened.push(await packetRunner(features, stubs, knobs))
  })
  afterAll(() => opened.pop()?.close())

  const ours = ({ isForeign }: Story): boolean => isForeign === undefined || !('host_policy' in knobs)
  const told = families.flatMap((f) =>
    storiesOf(f)
      .filter(ours)
      .map((story) => ({ family: f.name, name: story.name, f, story })),
  )
  test.each(told)(
    '$family, $name: every packet asks what the first one asked',
    ({ f, story }) => checkAll(f, story),
    Math.max(120_000, RUNS * 5000),
  )
})
