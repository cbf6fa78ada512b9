// SPDX-License-Identifier: Apache-2.0
/** Random flows, as nodes tell them. Layer: test. */
import fc from 'fast-check'
import {
  END_RULE,
  END_TYPES,
  FLOW_ACTIONS,
  HIT_KINDS,
  NONE,
  REPORTERS,
  UNKNOWN_RULE,
  WINDOW_SECONDS,
  type EndDetails,
  type FlowEnd,
  type FlowKey,
  type FlowUpdate,
  type FlowWindow,
  type PolicyHit,
} from '#lib/flows/flow.ts'

const name = fc.stringMatching(/^[a-z][a-z0-9-]{0,8}\*?$/)
const count = fc.oneof(fc.nat(), fc.nat({ max: 2 ** 40 }), fc.constant(Number.MAX_SAFE_INTEGER))
const port = fc.nat({ max: 65535 })
const namespace = fc.oneof(fc.constant(NONE), name)

const end: fc.Arbitrary<FlowEnd> = fc.record({ type: fc.constantFrom(...END_TYPES), name, namespace })

const ref = { kind: fc.constantFrom(...HIT_KINDS), tier: fc.oneof(fc.constant(''), name), namespace: fc.oneof(fc.constant(''), name), name }

const hit: fc.Arbitrary<PolicyHit> = fc.record(
  {
    ...ref,
    action: fc.constantFrom(...FLOW_ACTIONS),
    rule: fc.oneof(fc.nat({ max: 1000 }), fc.constantFrom(END_RULE, UNKNOWN_RULE)),
    trigger: fc.record(ref),
  },
  { requiredKeys: ['kind', 'tier', 'namespace', 'name', 'action', 'rule'] },
)

export const key: fc.Arbitrary<FlowKey> = fc.record({
  source: end,
  dest: end,
  destPort: port,
  service: fc.option(fc.record({ namespace: name, name, portName: namespace, port }), { nil: undefined }),
  protocol: fc.constantFrom('tcp', 'udp', 'icmp', '47'),
  reporter: fc.constantFrom(...REPORTERS),
  action: fc.constantFrom('Allow', 'Deny'),
  reason: fc.constantFrom('', 'flow_insert'),
  enforced: fc.array(hit, { maxLength: 3 }),
  pending: fc.array(hit, { maxLength: 3 }),
})

const texts = fc.array(name, { maxLength: 3 })
const details: fc.Arbitrary<EndDetails> = fc.record({
  labels: texts,
  addresses: texts,
  pods: texts,
  node: fc.oneof(fc.constant(''), name),
  owner: fc.oneof(fc.constant(''), name),
})

export const window: fc.Arbitrary<FlowWindow> = fc.record({
  key,
  start: fc.nat({ max: 200_000_000 }).map((index) => index * WINDOW_SECONDS),
  counts: fc.record({
    packetsIn: count,
    packetsOut: count,
    bytesIn: count,
    bytesOut: count,
    started: count,
    completed: count,
    live: count,
  }),
  source: details,
  dest: details,
  sourcePorts: fc.array(port, { maxLength: 3 }),
})

export const update: fc.Arbitrary<FlowUpdate> = fc.record({ node: name, sequence: count, window })
