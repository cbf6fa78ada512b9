// SPDX-License-Identifier: Apache-2.0
/** Upstream's tests that measure, by their names, and one of our own: outside of the gate, for what else a machine does
 * decides them. Root. Layer: test. */
import { afterAll, beforeAll, describe } from 'vitest'
import { Cluster } from '../../../testkit/lab/cluster.ts'
import { latencyTests } from './clusters.ts'
import { iperfTests, tunnelTests } from './throughput.ts'

const cluster = new Cluster('e2erates')
beforeAll(() => cluster.up())
afterAll(() => cluster.down())

describe('[sig-network] Service endpoints latency', () => {
  latencyTests(cluster)
})

describe('[sig-network] Networking IPerf2', () => {
  iperfTests(cluster)
})

describe('Netplane', () => {
  tunnelTests(cluster)
})
