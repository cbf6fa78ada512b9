// SPDX-License-Identifier: Apache-2.0
/** Whatever is stored: it comes out in a form that our readers take, with the meaning that it had, or is refused with
 * its field and a reason. Nothing is thrown, and nothing is dropped. Layer: test. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { deepEqual } from '#lib/base/deep-equal.ts'
import { rejectedText } from '#lib/base/result.ts'
import { layerFrom } from '#agent/config/layers.ts'
import { resolveConfig } from '#agent/config/resolve.ts'
import { identify, parseObject } from '#lib/kube/parse/parse-object.ts'
import { controllersConfigurationSpec } from '#lib/kube/schema/controllers-configuration.ts'
import { STORED_KINDS } from '#upgrade/stored/kinds.ts'
import type { Outcome, V3Object } from '#upgrade/stored/outcome.ts'
import { readStored } from '#upgrade/stored/read.ts'
import { raw, storedBy, VERSIONS } from './stored.ts'

const kinds = fc.constantFrom(...STORED_KINDS.map(({ kind }) => kind))
const names = fc.oneof(
  fc.constantFrom('default', 'default.web', 'node.a', 'web', 'default.default.web', 'security.web', 'knp.default.x'),
  fc.string(),
)

/** Fields that kinds have, with values that they may have, and others. */
const values = fc.oneof(
  fc.constantFrom<unknown>(
    '10.0.0.0/16',
    'fd00::/64',
    'all()',
    'has(a)',
    'a ==',
    'Always',
    'never',
    'ALLOW',
    'deny',
    'Log',
    'TCP',
    'default',
    '90S',
    '5m',
  ),
  fc.constantFrom<unknown>(['Ingress'], ['egress', 'INGRESS'], ['10.0.0.0/8'], [{ action: 'allow' }], [{ action: 'Log' }], {
    enabled: true,
    mode: 'always',
  }),
  fc.jsonValue({ maxDepth: 3 }),
)
const fields = fc.constantFrom(
  ...['cidr', 'ipip', 'nat-outgoing', 'ipipMode', 'vxlanMode', 'blockSize', 'nodeSelector', 'natOutgoing', 'nets', 'node', 'interfaceName'],
  ...[
    'tier',
    'order',
    'types',
    'ingress',
    'egress',
    'selector',
    'defaultAction',
    'stagedAction',
    'doNotTrack',
    'bpfEnabled',
    'logSeverityScreen',
  ],
  ...[
    'bpfConnectTimeLoadBalancingEnabled',
    'wireguardEnabled',
    'controllers',
    'datastoreReady',
    'bpfConntrackTimeouts',
    '__proto__',
    'constructor',
  ],
)
const specs = fc.oneof(fc.dictionary(fc.oneof({ weight: 5, arbitrary: fields }, fc.string()), values), values)

const anything = fc.record({
  apiVersion: fc.constant('crd.netplane.io/v1'),
  kind: fc.oneof({ weight: 9, arbitrary: kinds }, fc.string()),
  metadata: fc.oneof(
    { weight: 6, arbitrary: fc.record({ name: names }) },
    fc.record(
      {
        name: names,
        namespace: fc.string(),
        uid: fc.oneof(fc.uuid(), fc.string()),
        labels: fc.jsonValue({ maxDepth: 1 }),
        annotations: fc.oneof(
          fc.dictionary(fc.constantFrom('netplane.io/metadata', 'a'), fc.oneof(fc.json(), fc.string())),
          fc.jsonValue({ maxDepth: 1 }),
        ),
        ownerReferences: fc.oneof(
          fc.array(fc.record({ apiVersion: fc.constantFrom('netplane.io/v3', 'v1'), uid: fc.uuid() })),
          fc.jsonValue({ maxDepth: 2 }),
        ),
      },
      { requiredKeys: ['name'] },
    ),
    fc.jsonValue({ maxDepth: 2 }),
  ),
  spec: specs,
})

function outcomesOf(objects: readonly unknown[]): readonly Outcome[] {
  return readStored({ objects, environment: {} }).outcomes
}

function isTaken(object: V3Object): boolean {
  if (object.kind === 'ControllersConfiguration') {
    controllersConfigurationSpec.read(object.spec)
    return true
  }
  const identified = identify(object)
  const parsed = identified.kind === 'ours' ? parseObject(object, identified.ref) : undefined
  if (parsed?.kind === 'ok' && parsed.value.kind === 'FelixConfiguration')
    return resolveConfig([layerFrom(parsed.value)], undefined).rejected.length === 0
  return parsed?.kind === 'ok'
}

test('any object comes out in a form that its reader takes, or with a reason', () => {
  fc.assert(
    fc.property(fc.array(fc.oneof({ weight: 9, arbitrary: anything }, fc.jsonValue({ maxDepth: 3 })), { maxLength: 4 }), (objects) => {
      const outcomes = outcomesOf(objects)
      for (const outcome of outcomes) {
        if ('object' in outcome) expect([outcome.object, isTaken(outcome.object)]).toEqual([outcome.object, true])
        if (outcome.kind === 'refused') {
          expect(outcome.faults.length).toBeGreaterThan(0)
          expect(outcome.faults.filter(({ reason }) => reason === '')).toEqual([])
        }
        if (outcome.kind === 'changed') expect(outcome.differences.length).toBeGreaterThan(0)
      }
      // addresses are read by themselves
      const addresses = readStored({ objects, environment: {} }).addresses.length
      expect(outcomes.filter(({ of }) => of !== undefined).length + addresses).toBe(objects.length)
    }),
    { numRuns: 1000 },
  )
})

const SELECTORS = fc.constantFrom('all()', "a == 'x'", 'has(b) && !has(c)', '')
const rules = fc.array(
  fc.record(
    {
      action: fc.constantFrom('Allow', 'Deny', 'Pass'),
      protocol: fc.constantFrom<string | number>('TCP', 'UDP', 6),
      source: fc.record({ nets: fc.constant(['10.0.0.0/8']), selector: SELECTORS }, { requiredKeys: [] }),
      destination: fc.record({ ports: fc.array(fc.oneof(fc.nat(65_535), fc.constant('8000:9000')), { maxLength: 3 }) }),
    },
    { requiredKeys: ['action', 'protocol'] },
  ),
  { maxLength: 3 },
)
const policies = fc.record(
  {
    order: fc.integer({ min: 0, max: 1000 }),
    selector: SELECTORS,
    types: fc.subarray(['Ingress', 'Egress']),
    ingress: rules,
    egress: rules,
  },
  { requiredKeys: [] },
)

/** As our reader understands it. */
function meaningOf(object: object): unknown {
  const identified = identify(object)
  if (identified.kind !== 'ours') return identified
  const parsed = parseObject(object, identified.ref)
  return parsed.kind === 'ok' ? parsed.value : parsed.rejected.map(rejectedText)
}

test('a policy of any version means what it meant', () => {
  fc.assert(
    fc.property(fc.constantFrom(...VERSIONS), policies, fc.boolean(), (version, spec, isShouted) => {
      const written = isShouted ? { ...spec, types: spec.types?.map((type) => type.toUpperCase()) } : spec
      const [outcome] = outcomesOf([storedBy(version)('NetworkPolicy', 'shop/web', { spec: written })]).filter(({ of }) => of !== undefined)
      const expected = { apiVersion: 'netplane.io/v3', kind: 'NetworkPolicy', metadata: { name: 'web', namespace: 'shop' }, spec }
      expect(outcome !== undefined && 'object' in outcome && deepEqual(meaningOf(outcome.object), meaningOf(expected))).toBe(true)
    }),
  )
})

test('what is written in the form of this version is carried as it is', () => {
  const labels = { 'netplane.io/tier': 'default' }
  fc.assert(
    fc.property(policies, (spec) => {
      const whole = { ...spec, types: ['Ingress', 'Egress'] }
      const [outcome] = outcomesOf([raw('NetworkPolicy', 'shop/web', { spec: whole, labels })]).filter(({ of }) => of !== undefined)
      expect(outcome).toMatchObject({ kind: 'carried', object: { spec: whole } })
    }),
  )
})
