// SPDX-License-Identifier: Apache-2.0
/** A pod that this agent alone knows, to ask services from as pods do. It is there while the agent asks: its network
 * namespace has no file, so that it goes with an agent that is killed, and its address is written down nowhere.
 * Layer: agent. */
import { closeSync } from 'node:fs'
import { makeNetns, NetlinkSocket, socketInNetns } from '#native'
import type { Clock } from '#lib/base/clock.ts'
import type { Addr } from '#lib/base/ip.ts'
import { waitUntil, withinLimits, type Notifier, type WaitLimits } from '#lib/base/async/wait.ts'
import { addressesInUse, planAddresses, withoutPools } from '#lib/ipam/plan.ts'
import { podLabels } from '#lib/model/effective-labels.ts'
import { NO_LABELS } from '#lib/model/labels.ts'
import { INTERFACE_PREFIX, workloadInterface, type Pod } from '#lib/model/pod.ts'
import type { Snapshot } from '#lib/model/snapshot.ts'
import { policiesIn, tierLines } from '#lib/policy/rule-order.ts'
import { KernelVeths, linkIndexOf } from '../cni/networking/kernel-veths.ts'
import { NETLINK_ROUTE, NetlinkExchange } from '../interfaces/netlink/exchange.ts'
import type { Ipam, LentAddresses } from '../ipam/ipam.ts'
import type { PodClient } from '../proof/node-mode.ts'
import { isNodeAnnounced, usualMtu } from './cni-plugin.ts'
import type { PodsOptions } from './pods.ts'

/** Why an agent has none, whatever it waits for. */
export const OTHERS_PODS = 'another plugin gives the pods of this node their network'

/** No pod of a cluster has such a name. */
const REF = { kind: 'Pod', namespace: 'netplane-system', name: '(proof)' } as const
const OPEN_MS = 5000

export interface ProofPodOptions extends PodsOptions {
  readonly ipam: Ipam
  /** a pass is over */
  readonly changed: Notifier
  readonly clock: Pick<Clock, 'after' | 'now'>
  readonly signal: AbortSignal
}

/** In the order of an ADD (`agent/cni/plugin.ts`). Rejects with the reason where there can be none at present. */
export async function openProofPod(of: ProofPodOptions): Promise<PodClient> {
  const { clock, signal, store, options, sink, dataplane, changed, interfaces, config } = of
  const limits = { clock, deadline: clock.now() + OPEN_MS, signal }
  const silence = (): string | undefined => (isNodeAnnounced(of) ? undefined : 'other nodes have not heard of this one')
  await waitUntil({ ...limits, missing: silence, wokenBy: [changed] })
  await using opening = new AsyncDisposableStack()
  const { addresses } = opening.use(await lend(of, limits))
  const netlink = opening.adopt(NetlinkSocket.open({ protocol: NETLINK_ROUTE }), (socket) => {
    socket.close()
  })
  const node = new NetlinkExchange(netlink)
  const netns = `/proc/self/fd/${opening.adopt(makeNetns(), closeSync)}`
  const host = workloadInterface(REF, config()?.compile.interfacePrefix ?? INTERFACE_PREFIX)
  const mtu = of.cni.mtu ?? usualMtu(of, addresses)
  const veth = { containerId: REF.name, host, netns, ifname: 'eth0', mtu, addresses }
  const veths = new KernelVeths({ netlink: node, interfaces })
  opening.defer(() => {
    sink.apply([{ kind: 'delete', ref: REF }])
  })
  opening.defer(() => {
    veths.remove(veth)
  })
  veths.create(veth)
  const pod = podOf({ node: options.node, addresses, host })
  sink.apply([{ kind: 'upsert', object: pod }])
  const place = { iface: host, index: linkIndexOf(node, host), addresses }
  await waitUntil({ ...limits, missing: () => dataplane.missingOf(place), wokenBy: [changed] })
  using raised = veths.raise(veth)
  await waitUntil({ ...limits, missing: () => raised.missing(), wokenBy: raised.changed })
  const open = opening.move()
  return {
    isRuled: isRuled(pod, store.snapshot),
    socketOf: (family, protocol, hopLimit) => socketInNetns(netns, family, protocol, hopLimit),
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  }
}

/** Throws as {@link Ipam.lend} and {@link withinLimits} do. */
async function lend(
  { ipam, cni, held, store: { snapshot }, options: { node } }: ProofPodOptions,
  limits: WaitLimits,
): Promise<LentAddresses> {
  const { clock, deadline, signal } = limits
  const isWanted = (): boolean => clock.now() < deadline && signal?.aborted !== true
  const pod = podOf({ node, addresses: [], host: '' })
  const work = ipam.lend({
    plans: planAddresses(pod, cni.local ? withoutPools(snapshot) : snapshot, node),
    inUse: new Set([...addressesInUse(snapshot, node), ...held()]),
    isWanted,
  })
  return await withinLimits(work, 'blocks are not read yet', limits)
}

/** To the cluster it is a pod that goes: one of its own that has the address is the one whose it is. */
function podOf({ node, addresses, host }: { readonly node: string; readonly addresses: readonly Addr[]; readonly host: string }): Pod {
  return {
    ...REF,
    nodeName: node,
    podIPs: addresses,
    hostNetwork: false,
    phase: 'Running',
    terminating: true,
    labels: NO_LABELS,
    serviceAccount: 'default',
    ports: [],
    veth: { iface: host, ours: true },
  }
}

/** Some policy judges what it sends. */
function isRuled(pod: Pod, snapshot: Snapshot): boolean {
  const world = { tiers: snapshot.tiers, policies: policiesIn('real', snapshot.policies.values()) }
  const labels = podLabels(pod, snapshot)
  return tierLines(world, { labels, direction: 'egress', scopes: ['normal', 'forward'] }).length > 0
}
