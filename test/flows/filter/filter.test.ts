// SPDX-License-Identifier: Apache-2.0
import { create, fromBinary, type MessageInitShape } from '@bufbuild/protobuf'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { FLOW_ACTIONS, HIT_KINDS, NONE, REPORTERS, type FlowKey, type PolicyHit } from '#lib/flows/flow.ts'
import { FilterSchema } from '#lib/flows/wire/goldmane_pb.ts'
import { writePart } from '#lib/flows/wire/policy-match.ts'
import { matches, type Filter } from '#flows/filter/filter.ts'
import { filterOf } from '#flows/filter/from-wire.ts'
import { filterSql } from '#flows/filter/sql.ts'
import { keysOf } from '#flows/query/records.ts'
import { key } from '../../lib/flows/arbitrary.ts'
import { hex } from '../../lib/flows/wire/bytes.ts'
import { T0, TestStore, updateOf, WEB_TO_DB } from '../made.ts'

const HIT: PolicyHit = { kind: 'NetworkPolicy', tier: 'default', namespace: 'shop', name: 'web-out', action: 'Allow', rule: 0 }
const END: PolicyHit = { ...HIT, kind: 'EndOfTier', namespace: '', name: '', action: 'Deny', rule: -1, trigger: { ...HIT, name: 'asked' } }

const KEYS: Readonly<Record<string, FlowKey>> = {
  allowed: WEB_TO_DB,
  passed: { ...WEB_TO_DB, enforced: [{ ...HIT, action: 'Pass', tier: 'sec' }, HIT] },
  denied: { ...WEB_TO_DB, action: 'Deny', reporter: 'Dst', enforced: [END] },
  staged: { ...WEB_TO_DB, pending: [{ ...HIT, kind: 'StagedNetworkPolicy', name: 'draft', action: 'Deny' }, HIT] },
  out: { ...WEB_TO_DB, dest: { type: 'Network', name: 'pub', namespace: NONE }, destPort: 443, service: undefined, enforced: [] },
  inside: { ...WEB_TO_DB, dest: { type: 'Network', name: 'pvt', namespace: NONE }, destPort: 53, protocol: 'udp', enforced: [] },
}
const ALL = Object.keys(KEYS)
const [exact, fuzzy] = [0, 1] as const
const part = (value: string, isFuzzy = false): Uint8Array => writePart({ value, isFuzzy })

const CASES: readonly (readonly [string, MessageInitShape<typeof FilterSchema>, readonly string[]])[] = [
  ['nothing is everything', {}, ALL],
  ['a name', { sourceNames: [{ value: 'web-*' }] }, ALL],
  ['a part of a name is not it', { sourceNames: [{ value: 'web' }] }, []],
  ['a part of a name, fuzzy', { sourceNames: [{ value: 'web', type: fuzzy }] }, ALL],
  ['upper case is not lower case', { sourceNames: [{ value: 'WEB', type: fuzzy }] }, []],
  ['one of a list', { destPorts: [{ port: 443n }, { port: 53n }] }, ['out', 'inside']],
  ['all lists', { destPorts: [{ port: 443n }, { port: 53n }], protocols: [{ value: 'udp' }] }, ['inside']],
  ['what people call a network', { destNames: [{ value: 'PUBLIC NETWORK' }] }, ['out']],
  ['a part of that', { destNames: [{ value: 'NETWORK', type: fuzzy }] }, ['out', 'inside']],
  ['and what it is called here', { destNames: [{ value: 'pvt', type: exact }] }, ['inside']],
  ['what people call no namespace', { destNamespaces: [{ value: 'Global' }] }, ['out', 'inside']],
  ['an action', { actions: [2] }, ['denied']],
  ['a reporter', { reporter: 2 }, ['denied']],
  ['0 is both reporters', { reporter: 0 }, ALL],
  ['any pending hit, not the last alone', { pendingActions: [2] }, ['staged']],
  ['a policy of no parts is any hit', { policies: [{}] }, ['allowed', 'passed', 'denied', 'staged']],
  ['a kind', { policies: [{ kind: 3 }] }, ['staged']],
  ['the parts of one hit', { policies: [{ tier: part('sec'), action: 3 }] }, ['passed']],
  ['not those of two', { policies: [{ tier: part('sec'), action: 1 }] }, []],
  ['one of two policies', { policies: [{ kind: 10 }, { name: part('dra', true) }] }, ['denied', 'staged']],
  ['a tier of 3.31, which is a text', { policies: [{ tier: new TextEncoder().encode('sec') }] }, ['passed']],
  ['what asked for the end of a tier is not a hit', { policies: [{ name: part('asked') }] }, []],
  ['the end of a tier has a tier', { policies: [{ tier: part('default'), action: 2 }] }, ['denied', 'staged']],
]

describe('a filter', () => {
  test.each(CASES)('%s', (_title, message, wanted) => {
    const filter = filterOf(create(FilterSchema, message))
    expect(ALL.filter((name) => matches(filter, KEYS[name] ?? WEB_TO_DB))).toEqual(wanted)
  })

  test.each([
    ['an action of a version to come', '38 01 38 04', 'filter.actions[1]: 4 is none of 1, 2, 3'],
    ['no action', '50 00', 'filter.pending_actions[0]: 0 is none of 1, 2, 3'],
    ['a kind', '42 02 08 63', /^filter.policies\[0\].kind: 99 is none of/],
  ] as const)('%s is told with its field', (_title, bytes, reason) => {
    expect(() => filterOf(fromBinary(FilterSchema, hex(bytes)))).toThrow(reason)
  })
})

const text = fc.constantFrom('a', 'b', 'ab', 'pub', 'PUBLIC', 'Global', '-', 'tcp', '%', '_')
const match = fc.record({ value: text, isFuzzy: fc.boolean() })
const some = <T>(of: fc.Arbitrary<T>): fc.Arbitrary<T[]> =>
  fc.oneof({ weight: 3, arbitrary: fc.constant<T[]>([]) }, fc.array(of, { maxLength: 2 }))
const maybe = <T>(of: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(of, { nil: undefined })
const filter: fc.Arbitrary<Filter> = fc.record({
  sourceNames: some(match),
  sourceNamespaces: some(match),
  destNames: some(match),
  destNamespaces: some(match),
  protocols: some(match),
  destPorts: some(fc.nat({ max: 3 })),
  actions: some(fc.constantFrom(...FLOW_ACTIONS)),
  policies: some(
    fc.record({
      kind: maybe(fc.constantFrom(...HIT_KINDS)),
      tier: maybe(match),
      namespace: maybe(match),
      name: maybe(match),
      action: maybe(fc.constantFrom(...FLOW_ACTIONS)),
    }),
  ),
  reporter: maybe(fc.constantFrom(...REPORTERS)),
  pendingActions: some(fc.constantFrom(...FLOW_ACTIONS)),
})

test('tables answer a filter as flows that come do', async () => {
  await using it = await TestStore.open()
  const small = key.chain((one) =>
    fc
      .record({ source: text, dest: text, namespace: text, port: fc.nat({ max: 3 }) })
      .map(({ source, dest, namespace, port }): FlowKey => ({
        ...one,
        source: { type: 'Network', name: source, namespace },
        dest: { type: 'Network', name: dest, namespace },
        destPort: port,
        enforced: one.enforced.map((hit) => ({ ...hit, tier: source, name: dest, namespace })),
      })),
  )
  const keys = fc.sample(small, { numRuns: 300, seed: 1 })
  keys.forEach((one, index) => it.store.take(updateOf('a', index, { start: T0, key: one }), ''))
  await it.store.flush()
  const all = await it.store.read({ text: 'SELECT id FROM store.keys', values: [] })
  const ids = await keysOf(
    (asked) => it.store.read(asked),
    all.map(([id]) => Number(id)),
  )
  let found = 0
  await fc.assert(
    fc.asyncProperty(filter, async (one) => {
      const { text: condition, values } = filterSql(one)
      const rows = await it.store.read({ text: `SELECT id FROM store.keys WHERE ${condition} ORDER BY id`, values })
      const wanted = [...ids].filter(([, of]) => matches(one, of)).map(([id]) => id)
      found += wanted.length
      expect(rows.map(([id]) => Number(id))).toEqual(wanted.sort((a, b) => a - b))
    }),
    { numRuns: 500 },
  )
  expect(found).toBeGreaterThan(500)
})
