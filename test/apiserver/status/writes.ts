// SPDX-License-Identifier: Apache-2.0
/** Everything that an agent tells of its node, to an API server that has heard nothing of it: for tests of what
 * it must be allowed. Layer: test. */
import type { ApiClient } from '#lib/api/client.ts'
import { isRefused } from '#lib/api/errors.ts'
import { asApiObject, namedOf, type Named } from '#lib/api/resource.ts'
import { parseAddr } from '#lib/base/ip.ts'
import { CLUSTER_INFORMATION } from '#lib/kube/objects/cluster-information.ts'
import { NODE_NETWORK } from '#lib/kube/objects/node-network.ts'
import { STARTUP_TAINT } from '#lib/kube/objects/startup-taint.ts'
import type { Pod } from '#lib/model/pod.ts'
import { ClusterFacts } from '#agent/status/cluster-information.ts'
import { AGAIN_MS, Events } from '#agent/status/events.ts'
import { NodeCondition } from '#agent/status/node-condition.ts'
import { NodeModeStatus } from '#agent/status/node-mode-status.ts'
import { OwnNetwork, type OwnNetworkOptions, type Said } from '#agent/status/node-network.ts'
import type { Subject } from '#agent/status/outbox.ts'
import { PodConditions } from '#agent/status/pod-conditions.ts'
import { StartupTaint } from '#agent/status/startup-taint.ts'

const NAME = { namespace: 'default', name: 'told' } as const
const POD = { apiVersion: 'v1', kind: 'Pod', ...NAME } as const
const AGENTS = { apiVersion: 'apps/v1', kind: 'DaemonSet', namespace: 'kube-system', name: 'netplane-node' } as const
const EVENT = { apiVersion: 'v1', kind: 'Event' } as const

/** As the agent of this node, which the server has. Rejects with what is refused. */
export async function tellAll(api: ApiClient, { admin, node }: { readonly admin: ApiClient; readonly node: string }): Promise<void> {
  await forget(admin, node)
  const began = Date.now()
  for (const now of [0, 1000, AGAIN_MS]) for (const subject of subjectsOf(api, { node, wall: () => began + now })) await tell(subject, now)
}

/** The first look at something, and what follows from it. */
async function tell(subject: Subject, now: number): Promise<void> {
  for (const at of [now, now + 1]) for (const { write } of subject.due(at)) await write(AbortSignal.timeout(10_000))
}

function subjectsOf(api: ApiClient, { node, wall }: { readonly node: string; readonly wall: () => number }): readonly Subject[] {
  const refusal = { key: '', object: POD, reason: 'Refused' as const, message: 'why', own: true }
  const pod: Pod = {
    kind: 'Pod',
    ...NAME,
    nodeName: node,
    podIPs: [parseAddr('10.0.0.7')],
    hostNetwork: false,
    phase: 'Running',
    terminating: false,
    labels: new Map(),
    serviceAccount: 'default',
    ports: [],
  }
  const addresses = { addresses: [parseAddr('192.0.2.1')], podCIDRs: [], labels: new Map<string, string>() }
  let self = { ...addresses, uid: 'u1' }
  let said: Said | undefined
  const network: OwnNetworkOptions['api'] = {
    // another Node of the name comes then
    create: async (object, options) => {
      said = { ...addresses, kind: 'NodeNetwork', namespace: '', name: node, subnets: [], owner: 'u1' }
      self = { ...self, uid: 'u2' }
      return await api.create(object, options)
    },
    patch: (named, patch, options) => api.patch(named, patch, options),
  }
  const alone = { api, node, wall, isReady: () => true }
  return [
    new OwnNetwork({
      api: network,
      node,
      self: () => self,
      said: () => said,
      held: () => [],
      interfaces: () => [],
      takesTunnel: () => true,
    }),
    new NodeModeStatus({
      ...{ ...alone, version: 'v1', isAnnounced: () => true, inMode: () => ({ mode: 'BPF', since: wall(), proof: undefined }) },
      ...{ generations: () => ({}), hasProxy: () => false, otherFlows: () => 0 },
    }),
    new NodeCondition({ ...alone, unready: () => [], takesPods: () => false, wasReady: false, isKnown: () => true }),
    new StartupTaint({ api, node, isTainted: () => true, serves: () => true }),
    new PodConditions({ ...alone, pods: () => [pod], interfacePrefix: () => 'npl', missingOf: () => undefined }),
    new Events({ ...alone, nodes: () => [node], refusals: () => [refusal] }),
    // another version each time
    new ClusterFacts({
      ...{ ...alone, daemonSet: AGENTS, newGuid: () => 'guid' },
      version: String(wall()),
      nodes: () => new Map([[node, { labels: new Map() }]]),
    }),
  ]
}

async function forget(admin: ApiClient, node: string): Promise<void> {
  const gone = async (named: Named): Promise<void> => {
    await admin.delete(named, { gracePeriodSeconds: 0 }).catch((thrown: unknown) => {
      if (!isRefused(thrown, 'NotFound')) throw thrown
    })
  }
  await gone(POD)
  await gone(CLUSTER_INFORMATION)
  await gone({ ...NODE_NETWORK, name: node })
  for (const event of await admin.list(EVENT)) await gone(namedOf(event))
  const conditions = { type: 'merge', subresource: 'status' } as const
  const own = { apiVersion: 'v1', kind: 'Node', name: node } as const
  await admin.patch(own, { status: { conditions: null } }, conditions)
  await admin.patch(own, { spec: { taints: [{ key: STARTUP_TAINT, effect: 'NoSchedule' }] } }, { type: 'merge' })
  await admin.create(asApiObject({ ...POD, metadata: NAME, spec: { nodeName: node, containers: [{ name: 'c', image: 'i' }] } }))
}
