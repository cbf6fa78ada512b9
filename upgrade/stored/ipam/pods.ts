// SPDX-License-Identifier: Apache-2.0
/** Pods that have addresses: the truth about them, whatever blocks say. Layer: upgrade (pure). */
import { isWithin, tryParseAddr, type Addr, type Cidr } from '#lib/base/ip.ts'
import { fieldsOf, isObject, textOf } from '#lib/base/object.ts'
import { rejectedText } from '#lib/base/result.ts'
import { identify, parseObject } from '#lib/kube/parse/parse-object.ts'
import { compareOwners, isFinished, statedAddresses, type Pod } from '#lib/model/pod.ts'
import { nameKey } from '#lib/model/ref.ts'

/** Written by the CNI plugin of older versions. */
const POD_IP = ['cni.netplane.io/podIP', 'cni.netplane.io/podIPs'] as const
const CONTAINER = 'cni.netplane.io/containerID'

export interface LivePod {
  readonly pod: Pod
  readonly addresses: readonly Addr[]
  /** its sandbox; empty: it is not known */
  readonly containerId: string
}

export interface LivePods {
  readonly byAddress: ReadonlyMap<Addr, LivePod>
  /** "shop/web", of which no address is known yet */
  readonly waiting: ReadonlySet<string>
  /** of nodes that are there */
  readonly podCIDRs: ReadonlyMap<string, readonly Cidr[]>
  /** addresses that a second pod says are its own as well, and objects that cannot be read */
  readonly faults: readonly { readonly address: Addr | undefined; readonly holder: string; readonly reason: string }[]
}

export function livePods(pods: readonly unknown[], nodes: readonly unknown[]): LivePods {
  const read = pods.map(readPod)
  const live = read.flatMap((one) => ('pod' in one ? [one] : [])).toSorted((a, b) => compareOwners(a.pod, b.pod))
  const byAddress = new Map<Addr, LivePod>()
  const faults = read.flatMap((one) => ('pod' in one ? [] : [{ address: undefined, holder: '', reason: one.reason }]))
  const shared = live.flatMap((one) =>
    one.addresses.flatMap((address) => {
      const owner = byAddress.get(address)
      if (owner === undefined) byAddress.set(address, one)
      if (owner === undefined || one.pod.terminating) return []
      return [{ address, holder: nameKey(one.pod), reason: `pod ${nameKey(owner.pod)} has it as well` }]
    }),
  )
  const waiting = new Set(live.filter(isWaiting).map(({ pod }) => nameKey(pod)))
  return { byAddress, waiting, podCIDRs: podRangesOf(nodes), faults: [...faults, ...shared] }
}

function isWaiting({ pod, addresses }: LivePod): boolean {
  return addresses.length === 0 && !pod.hostNetwork && !isFinished(pod)
}

/** A pod of an address that its node's own range has. */
export function isOfPodCidr({ podCIDRs }: LivePods, { pod }: LivePod, address: Addr): boolean {
  return isWithin(podCIDRs.get(pod.nodeName ?? '') ?? [], address)
}

function readPod(raw: unknown): LivePod | { readonly reason: string } {
  const identified = identify(raw)
  const parsed = identified.kind === 'ours' ? parseObject(raw, identified.ref) : undefined
  if (parsed?.kind === 'ok' && parsed.value.kind === 'Pod') return livePod(parsed.value, raw)
  const rejected = identified.kind === 'rejected' ? [identified.rejected] : parsed?.kind === 'rejected' ? parsed.rejected : []
  return { reason: rejected.length === 0 ? 'is no Pod' : rejected.map(rejectedText).join('; ') }
}

/** Before the kubelet has told an address, the plugin's annotation does. */
function livePod(pod: Pod, raw: unknown): LivePod {
  const annotations = fieldsOf(fieldsOf(isObject(raw) ? raw['metadata'] : undefined)['annotations'])
  const stated = statedAddresses(pod)
  const written = pod.hostNetwork || isFinished(pod) ? [] : POD_IP.flatMap((name) => addressesIn(textOf(annotations[name])))
  return { pod, addresses: stated.length > 0 ? stated : [...new Set(written)], containerId: textOf(annotations[CONTAINER]) }
}

/** "10.0.0.5/32,fd00::5/128" */
function addressesIn(text: string): readonly Addr[] {
  return text.split(',').flatMap((part) => tryParseAddr(part.trim().replace(/\/(32|128)$/, '')) ?? [])
}

function podRangesOf(nodes: readonly unknown[]): ReadonlyMap<string, readonly Cidr[]> {
  return new Map(
    nodes.flatMap((raw) => {
      const identified = identify(raw)
      const parsed = identified.kind === 'ours' ? parseObject(raw, identified.ref) : undefined
      return parsed?.kind === 'ok' && parsed.value.kind === 'Node' ? [[parsed.value.name, parsed.value.podCIDRs] as const] : []
    }),
  )
}
