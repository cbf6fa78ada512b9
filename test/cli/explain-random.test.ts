// SPDX-License-Identifier: Apache-2.0
/** Random worlds: whatever is asked, policies and tables agree, by the same rules. Layer: test. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseAddr } from '#lib/base/ip.ts'
import type { KubeObject } from '#lib/model/snapshot.ts'
import { object, packet } from '../agent/compile/policy/arbitrary.ts'
import { explain } from '../../cli/explain/manifests/explain.ts'
import { explanationText } from '../../cli/explain/manifests/text.ts'
import { clusterOf } from '../../cli/explain/manifests/cluster.ts'

/** Strangers of `packet` are nodes here, and host endpoints are whole nodes. */
const FIXED: readonly KubeObject[] = [
  ['n1', '192.0.2.1', '2001:db8::1'],
  ['n2', '192.0.2.129', '2001:db8::8001'],
].flatMap(([name = '', ...addresses]): KubeObject[] => [
  {
    kind: 'Node',
    namespace: '',
    name,
    addresses: addresses.map(parseAddr),
    podCIDRs: [],
    zone: undefined,
    labels: new Map([['app', '1']]),
    subnets: [],
  },
  {
    kind: 'HostEndpoint',
    namespace: '',
    name: `whole-${name}`,
    node: name,
    labels: new Map([['app', name === 'n1' ? '1' : '2']]),
    interfaceName: '*',
    expectedIPs: [],
    profiles: ['kns.x'],
    ports: [],
  },
])

const RUNS = Number(process.env['RUNS'] ?? 60)

const stages = new Set<string>()

test(
  'no answer is a defect',
  () => {
    fc.assert(
      fc.property(
        fc.array(object, { minLength: 20, maxLength: 50 }),
        fc.array(packet, { minLength: 20, maxLength: 40 }),
        (objects, packets) => {
          const world = clusterOf([...objects, ...FIXED].map((one) => ({ kind: 'upsert', object: one })))
          for (const one of packets) {
            const answer = explain({ now: world, candidate: world }, one, { entry: undefined, device: undefined })
            expect([one, answer.disagreements]).toEqual([one, []])
            for (const { checks } of answer.now.outcomes) for (const { stage, direction } of checks) stages.add(`${stage} ${direction}`)
            expect(answer.candidate?.changes).toBe(false)
            expect(explanationText(answer)).toContain('verdict: ')
          }
        },
      ),
      { numRuns: RUNS },
    )
  },
  Math.max(60_000, RUNS * 500),
)

test('every stage was asked', () => {
  expect([...stages].sort()).toEqual([
    'early ingress',
    'forward egress',
    'forward ingress',
    'normal egress',
    'normal ingress',
    'pod egress',
    'pod ingress',
    'untracked egress',
    'untracked ingress',
  ])
})
