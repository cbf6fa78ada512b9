// SPDX-License-Identifier: Apache-2.0
/** Everything of the wanted data plane that is not a table: knobs, attachments, routes, sysctls.
 * Layer: agent/compile (pure). */
import { ANY_V4, ANY_V6, formatCidr, isV4, type Addr } from '#lib/base/ip.ts'
import { compareText } from '#lib/base/order.ts'
import { nodeAddress, podRanges } from '#lib/model/node.ts'
import { interfaceOf, isOurs } from '#lib/model/pod.ts'
import type { Pod } from '#lib/model/pod.ts'
import { hasHostEndpoint } from '#lib/model/policy.ts'
import { nameKey } from '#lib/model/ref.ts'
import type { Snapshot } from '#lib/model/snapshot.ts'
import { isLocalWorkload } from './addresses.ts'
import type { DesiredNode, HealthCheck, Knobs, RouteRow, WorkloadAttachment } from './desired.ts'
import { hasOverlay, overlayAddress } from './pools.ts'
import type { Pools } from './pools.ts'
import type { CompileSettings } from './settings.ts'

export interface NodeInput {
  /** this node's name */
  readonly node: string
  readonly snapshot: Snapshot
  readonly pools: Pools
  readonly settings: CompileSettings
  /** no: another CNI plugin makes ways to other nodes' pods */
  readonly makesRoutes?: boolean | undefined
  /** sorted */
  readonly healthChecks: readonly HealthCheck[]
  /** of pods that were here before: names of interfaces are hashes */
  readonly attachments: Attachments
}

/** What pods' interfaces are called, once for each. */
export class Attachments {
  #prefix = ''
  #known = new WeakMap<Pod, WorkloadAttachment>()

  of(pod: Pod, prefix: string): WorkloadAttachment {
    if (prefix !== this.#prefix) this.#known = new WeakMap()
    this.#prefix = prefix
    const attachment = this.#known.get(pod) ?? { iface: interfaceOf(pod, prefix), pod: nameKey(pod), ours: isOurs(pod, prefix) }
    this.#known.set(pod, attachment)
    return attachment
  }
}

/** Costs in proportion to the node's pods, the cluster's nodes, and where the node has host endpoints, its policies. */
export function compileNode(input: NodeInput): DesiredNode {
  const { settings, snapshot } = input
  const node = snapshot.nodes.get(input.node)
  const ways = routes(input)
  return {
    knobs: {
      nodeV4: (node && nodeAddress(node, true)) ?? ANY_V4,
      nodeV6: (node && nodeAddress(node, false)) ?? ANY_V6,
      ...settings.knobs,
      overlay: hasOverlay(input.pools),
      vteps: [...snapshot.nodes.values()].some(({ name, vteps }) => name !== input.node && vteps !== undefined),
      ...policyKnobs(input),
    },
    mapSizes: settings.mapSizes,
    workloads: workloads(input),
    host: {
      addresses: [...(node?.addresses ?? [])].sort(compareText),
      elsewhere: input.makesRoutes === false ? ways.map(({ cidr }) => cidr.addr) : [],
      pattern: settings.dataInterfacePattern,
      excluded: settings.excludedInterfaces,
    },
    nodePortAddresses: settings.nodes.nodePortAddresses,
    routes: input.makesRoutes === false ? [] : ways,
    tunnelled: isTunnelled(input),
    healthChecks: input.healthChecks,
    sysctls: settings.forwards ? forwarding(input) : {},
    cgroup: settings.cgroup,
  }
}

/** Packets between pods and the world pass through this node, of those families that pods have. A node that forwards
 * IPv6 without need loses what routers have told it (see router-advertisements.ts): there it is as it was before. */
function forwarding(input: NodeInput): DesiredNode['sysctls'] {
  return {
    ...(hasPods(input, true) ? { 'net/ipv4/ip_forward': '1' } : {}),
    'net/ipv6/conf/all/forwarding': hasPods(input, false) ? '1' : undefined,
  }
}

/** Whether pods of the family may be in the cluster: by ranges, by pods of this node, or by the cluster's first Service
 * where another plugin's ranges are not known. */
function hasPods({ snapshot, pools, node }: NodeInput, v4: boolean): boolean {
  const isOf = (addr: Addr): boolean => isV4(addr) === v4
  if ([...pools.values()].some(({ cidr }) => isOf(cidr.addr))) return true
  if ([...snapshot.nodes.values()].some((one) => podRanges(one).some(({ addr }) => isOf(addr)))) return true
  if (snapshot.services.get('default/kubernetes')?.clusterIPs.some(isOf) === true) return true
  for (const pod of snapshot.podsOn(node)) if (isLocalWorkload(pod, node) && pod.podIPs.some(isOf)) return true
  return false
}

/** Programs that have nothing to ask do not ask. */
function policyKnobs({ snapshot, node }: NodeInput): Pick<Knobs, 'hostPolicy' | 'untracked' | 'clusterPolicy'> {
  const hostPolicy = hasHostEndpoint(snapshot.hostEndpoints.values(), node)
  const policies = [...snapshot.policies.values()]
  return {
    hostPolicy,
    untracked: hostPolicy && policies.some(({ scope }) => scope === 'doNotTrack'),
    clusterPolicy: policies.some(({ kind }) => kind === 'ClusterNetworkPolicy'),
  }
}

/** A tunnel has two ends. Where another plugin makes ways, it is for node ports alone. */
function isTunnelled({ snapshot, node, makesRoutes, settings }: NodeInput): boolean {
  if (makesRoutes === false && settings.services.mode === 'Standard') return false
  const ends = [...snapshot.nodes.values()].filter(({ addresses }) => addresses.length > 0)
  return ends.length > 1 && ends.some(({ name }) => name === node)
}

function workloads(input: NodeInput): readonly WorkloadAttachment[] {
  const found: WorkloadAttachment[] = []
  for (const pod of input.snapshot.podsOn(input.node)) {
    if (isLocalWorkload(pod, input.node)) found.push(input.attachments.of(pod, input.settings.interfacePrefix))
  }
  return found.sort((a, b) => compareText(a.iface, b.iface) || compareText(a.pod, b.pod))
}

/** Other nodes' pod ranges by their addresses. Where two nodes claim one range the first name has it, so that a node
 * that was replaced under another name cannot flip it back and forth. */
function routes(input: NodeInput): readonly RouteRow[] {
  const self = input.snapshot.nodes.get(input.node)
  const own = new Set(self?.addresses)
  const byRange = new Map<string, { readonly node: string; readonly row: RouteRow }>()
  for (const node of input.snapshot.nodes.values()) {
    if (node.name === input.node) continue
    for (const cidr of podRanges(node)) {
      const via = nodeAddress(node, isV4(cidr.addr))
      if (via === undefined || own.has(via)) continue
      const key = formatCidr(cidr)
      const holder = byRange.get(key)
      const overlay = overlayAddress(input.pools, cidr, { node, self }) !== undefined
      if (holder === undefined || node.name < holder.node) byRange.set(key, { node: node.name, row: { cidr, via, overlay } })
    }
  }
  return [...byRange.values()].map(({ row }) => row).sort((a, b) => compareText(a.cidr.addr, b.cidr.addr) || a.cidr.bits - b.cidr.bits)
}
