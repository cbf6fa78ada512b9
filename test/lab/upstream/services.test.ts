// SPDX-License-Identifier: Apache-2.0
/** Upstream's tests of services, by their names, on three nodes with real agents. Root. Layer: test. */
import { afterAll, beforeAll, describe } from 'vitest'
import { affinityTests } from './affinity.ts'
import { ofMatrix } from '../../support/steady/matrix.ts'
import { endpointTests, lifeTests, notReadyTests } from './basics.ts'
import { Cluster } from '../../../testkit/lab/cluster.ts'
import { conntrackTests } from './conntrack.ts'
import { kindTests } from './kinds.ts'
import { loadBalancerTests, localBalancerTests } from './load-balancers.ts'
import { externalPolicyTests, fallbackTests, internalPolicyTests } from './policies.ts'

const cluster = new Cluster('e2eservices')
beforeAll(() => cluster.up())
afterAll(() => cluster.down())

type Suite = (cluster: Cluster) => void
/** What the gate has of each suite, and what it leaves to the part `long`. */
const SUITES: readonly (readonly [string, gate: readonly Suite[], others: readonly Suite[]])[] = [
  [
    'Services',
    [endpointTests, kindTests, externalPolicyTests],
    [lifeTests, notReadyTests, affinityTests, internalPolicyTests, fallbackTests],
  ],
  ['Conntrack', [conntrackTests], []],
  ['LoadBalancers', [], [loadBalancerTests]],
  ['LoadBalancers ExternalTrafficPolicy: Local', [localBalancerTests], []],
]

for (const [name, gate, others] of SUITES) {
  const suites = ofMatrix([...gate, ...others], gate)
  if (suites.length > 0)
    describe(`[sig-network] ${name}`, () => {
      for (const suite of suites) suite(cluster)
    })
}
