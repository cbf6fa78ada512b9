// SPDX-License-Identifier: Apache-2.0
/** Upstream's tests of the rest of the network, by their names, and one of our own. Root. Layer: test. */
import { afterAll, beforeAll, describe } from 'vitest'
import { Cluster } from '../../../testkit/lab/cluster.ts'
import { dualStackTests, metricTests, noSnatTests, podLifeTests, rangeTests, settingTests, sliceTests } from './clusters.ts'
import { firstFamilyTests, granularTests, podTests } from './granular.ts'
import { fragmentTests } from './throughput.ts'
import { distributionTests, hintTests } from './topology.ts'

const cluster = new Cluster('e2enetwork')
beforeAll(() => cluster.up())
afterAll(() => cluster.down())

describe('[sig-network] Networking / Granular Checks: Services', () => {
  granularTests(cluster, 4)
  firstFamilyTests(cluster, 4)
})

describe('[sig-network] Networking / Granular Checks: Pods', () => {
  podTests(cluster)
})

describe('[sig-network]', () => {
  dualStackTests(cluster)
})

describe('[sig-network] Granular Checks: Services Secondary IP Family [LinuxOnly]', () => {
  granularTests(cluster, 6)
})

describe('[sig-network] EndpointSlice', () => {
  sliceTests(cluster)
})

describe('[sig-network] KubeProxy', () => {
  settingTests(cluster)
})

describe('[sig-network] KubeProxyNFAcct', () => {
  metricTests(cluster)
})

describe('[sig-network] NoSNAT', () => {
  noSnatTests(cluster)
})

describe('[sig-network] Connectivity Pod Lifecycle', () => {
  podLifeTests(cluster)
})

describe('[sig-network] Service CIDRs', () => {
  rangeTests(cluster)
})

describe('[sig-network] Topology Hints', () => {
  hintTests(cluster)
})

describe('[sig-network] Traffic Distribution', () => {
  distributionTests(cluster)
})

describe('Netplane', () => {
  fragmentTests(cluster)
})
