// SPDX-License-Identifier: Apache-2.0
/** Upstream's tests of services, by their names, on three nodes with real agents. Root. Layer: test. */
import { afterAll, beforeAll, describe } from 'vitest'
import { affinityTests } from './affinity.ts'
import { endpointTests, lifeTests, notReadyTests } from './basics.ts'
import { Cluster } from '../../../testkit/lab/cluster.ts'
import { conntrackTests } from './conntrack.ts'
import { kindTests } from './kinds.ts'
import { loadBalancerTests, localBalancerTests } from './load-balancers.ts'
import { externalPolicyTests, fallbackTests, internalPolicyTests } from './policies.ts'

const cluster = new Cluster('e2eservices')
beforeAll(() => cluster.up())
afterAll(() => cluster.down())

describe('[sig-network] Services', () => {
  endpointTests(cluster)
  lifeTests(cluster)
  notReadyTests(cluster)
  kindTests(cluster)
  affinityTests(cluster)
  internalPolicyTests(cluster)
  externalPolicyTests(cluster)
  fallbackTests(cluster)
})

describe('[sig-network] Conntrack', () => {
  conntrackTests(cluster)
})

describe('[sig-network] LoadBalancers', () => {
  loadBalancerTests(cluster)
})

describe('[sig-network] LoadBalancers ExternalTrafficPolicy: Local', () => {
  localBalancerTests(cluster)
})
