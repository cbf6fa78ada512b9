// SPDX-License-Identifier: Apache-2.0
/** Pods and the host endpoint of testkit/packets/policy.ts as lib/policy's evaluator knows them. Layer: test. */
import { parseAddr } from '#lib/base/ip.ts'
import type { Pod } from '#lib/model/pod.ts'
import { BUILT_IN_TIERS } from '#lib/model/policy.ts'
import type { HostEndpoint, Policy } from '#lib/model/policy.ts'
import { refText } from '#lib/model/ref.ts'
import type { PolicyWorld } from '#lib/policy/peers.ts'
import { HOST, PODS } from '../../../testkit/packets/policy.ts'
import { families } from '../../../testkit/packets/cluster.ts'

export const endpoint: HostEndpoint = {
  kind: 'HostEndpoint',
  namespace: '',
  name: HOST,
  node: 'one',
  labels: new Map([['name', HOST]]),
  interfaceName: '*',
  expectedIPs: [],
  profiles: [],
  ports: [],
}

export const pods: readonly Pod[] = Object.entries(PODS).map(([name, { of, local }]) => ({
  kind: 'Pod',
  namespace: 'default',
  name,
  nodeName: local ? 'one' : 'two',
  podIPs: families.map((f) => parseAddr(of(f))),
  hostNetwork: false,
  phase: 'Running',
  terminating: false,
  labels: new Map([['name', name]]),
  serviceAccount: 'default',
  ports: [],
}))

export function worldOf(policies: readonly Policy[], ofHosts: boolean): PolicyWorld {
  return {
    pods: new Map(pods.map((pod) => [`${pod.namespace}/${pod.name}`, pod])),
    namespaces: new Map(),
    nodes: new Map(),
    serviceAccounts: new Map(),
    policies: new Map(policies.map((one) => [refText(one), one])),
    tiers: new Map(BUILT_IN_TIERS.map((tier) => [tier.name, tier])),
    networkSets: new Map(),
    profiles: new Map(),
    hostEndpoints: ofHosts ? new Map([[HOST, endpoint]]) : new Map(),
    allSlicesOf: () => [],
  }
}
