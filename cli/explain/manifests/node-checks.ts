// SPDX-License-Identifier: Apache-2.0
/** Whose rules a packet meets at one node, and where it goes from there. Layer: cli (pure). */
import { ADDR_MASQUERADE, ADDR_NODE, FRONTEND_NODE_PORT, POD_TO_HOST_DROP, RANGE_INSIDE } from '#lib/base/bpf-constants.ts'
import { isV4, type Addr } from '#lib/base/ip.ts'
import { nodeAddress } from '#lib/model/node.ts'
import type { Pod } from '#lib/model/pod.ts'
import type { Direction, HostEndpoint } from '#lib/model/policy.ts'
import { refText } from '#lib/model/ref.ts'
import { endpointOf, isFailsafe, isFailsafeAnswer, WILDCARD } from '#lib/policy/host.ts'
import type { View } from '#lib/policy/rule-order.ts'
import { UDP, type Packet } from '#lib/policy/packet.ts'
import { stagesIn, type StageQuery } from '#agent/policy/host-stages.ts'
import { inTurn } from '../stages.ts'
import { check, type Check, type CheckQuery } from './endpoint-check.ts'
import type { NodeView } from './node-view.ts'
import type { ExplainedCluster } from './cluster.ts'

/** How a packet comes to a node: from one of its pods or processes, by a device of the network, or in the tunnel
 * from another node. */
export type Arrival = 'here' | 'network' | 'tunnel'

export interface Visit {
  readonly node: NodeView
  readonly arrival: Arrival
  /** as it came, and as it goes on when its destination is translated */
  readonly before: Packet
  readonly packet: Packet
}

export interface NodeCheck {
  readonly world: ExplainedCluster
  readonly view: View
  /** device of nodes by which packets come and go; undefined: the one with the node's address */
  readonly device: string | undefined
}

/** In the order in which the packet meets them. */
export function checksAt({ world, view, device }: NodeCheck, visit: Visit): readonly Check[] {
  const { node, arrival, before, packet } = visit
  if (packet.src === packet.dst && before.dst === packet.dst) return []
  const [from, to] = [world.owner(packet.src), world.owner(packet.dst)]
  const isOwn = node.isSelf(packet.dst)
  const fromPod = arrival === 'here' && from.kind === 'pod'
  const toPod = to.kind === 'pod' && to.node === node.name
  const ask = (query: Omit<CheckQuery, 'view'>): Check => check(world, node, { ...query, view })
  const fromNode = arrival === 'here' && !fromPod
  const host = (endpoint: HostEndpoint | undefined, { stage, ...of }: HostQuery): readonly Check[] => {
    if (endpoint === undefined) return []
    const asked = (): Check => ask({ subject: { stage, endpoint }, ...of })
    const seen = stage === 'untracked' ? of.packet : packet
    const isNodes = of.direction === 'ingress' ? node.isSelf(seen.dst) : fromNode
    if (!isNodes) return [asked()]
    if (stage === 'untracked') return [sparedByUntracked(node, asked(), of)]
    return [isFailsafe(node.failsafes, packet, of.direction) ? settled(node, { endpoint, direction: of.direction }) : asked()]
  }
  const outer = deviceEndpoint(world, node, device)
  const inner = endpointOf(world.snapshot.hostEndpoints.values(), { node: node.name, name: WILDCARD, addresses: [] })
  const checks: Check[] = []
  if (fromPod && packet.src === packet.dst) return checksOfItself({ node, ask, pod: from.pod }, visit)
  if (fromPod) checks.push(ask({ subject: { stage: 'pod', endpoint: from.pod }, direction: 'egress', packet: sentBy(node, visit) }))
  if (fromPod && isOwn && node.config.compile.knobs.podToHost === POD_TO_HOST_DROP) checks.push(dropped(node))
  if (fromPod && isOwn) checks.push(...host(inner, { stage: 'normal', direction: 'ingress', packet }))
  const comingIn = stagesIn({ before, packet, byDevice: arrival === 'network', isOwn })
  if (arrival !== 'here') checks.push(...inTurn(comingIn, (of) => host(outer, { ...of, direction: 'ingress' })))
  if (fromNode) checks.push(...inTurn(sent({ packet, toPod }), (of) => host(toPod ? inner : outer, of)))
  else if (!toPod && !isOwn) checks.push(...host(outer, { stage: 'forward', direction: 'egress', packet }))
  // a node always reaches its pods
  if (toPod && (fromPod || arrival !== 'here'))
    checks.push(ask({ subject: { stage: 'pod', endpoint: to.pod }, direction: 'ingress', packet }))
  // those that say nothing and have no rules are no news
  return checks.filter(({ verdict, steps }) => verdict !== 'open' || steps.length > 1)
}

interface ItselfQuery {
  readonly node: NodeView
  readonly ask: (query: Omit<CheckQuery, 'view'>) => Check
  readonly pod: Pod
}

/** Of what a pod sends to itself by a service: of what denies it only ClusterNetworkPolicies count. */
function checksOfItself({ node, ask, pod }: ItselfQuery, visit: Visit): readonly Check[] {
  const subject = { stage: 'pod', endpoint: pod } as const
  return [
    ask({ subject, direction: 'egress', packet: sentBy(node, visit) }),
    ask({ subject, direction: 'ingress', packet: visit.packet }),
  ].filter(({ verdict, steps }) => verdict === 'deny' && steps.at(-1)?.by?.startsWith('ClusterNetworkPolicy/') === true)
}

/** As the sending pod's rules see it: node ports as they were asked for, for other nodes translate theirs. */
function sentBy(node: NodeView, { before, packet }: Pick<Visit, 'before' | 'packet'>): Packet {
  const { flags } = node.frontend(before.dst, before.dport, before.protocol)?.value ?? { flags: 0 }
  return (flags & FRONTEND_NODE_PORT) === 0 ? packet : before
}

const FAILSAFE = 'failsafe port'

/** Of what the node itself sends or receives: what untracked policies do not let be, and the others are asked about
 * instead. */
function sparedByUntracked({ failsafes }: NodeView, said: Check, { packet, direction }: Omit<HostQuery, 'stage'>): Check {
  // of what begins a flow only a datagram may be an answer
  const isAnswer = packet.protocol === UDP && isFailsafeAnswer(failsafes, packet, direction)
  if (said.verdict !== 'deny' || !(isAnswer || isFailsafe(failsafes, packet, direction))) return said
  const step = {
    tier: null,
    outcome: 'open',
    by: null,
    rule: null,
    id: null,
    text: isAnswer ? `answer of a ${FAILSAFE}` : FAILSAFE,
  } as const
  return { ...said, verdict: 'open', steps: [...said.steps, step] }
}

/** Where policy of host endpoints is not asked. */
function settled({ name }: NodeView, { endpoint, direction }: { readonly endpoint: HostEndpoint; readonly direction: Direction }): Check {
  const step = { tier: null, outcome: 'allow', by: null, rule: null, id: null, text: FAILSAFE } as const
  return { node: name, endpoint: refText(endpoint), stage: 'normal', direction, verdict: 'allow', steps: [step], disagreement: null }
}

/** What pods send to their own node. */
function dropped({ name }: NodeView): Check {
  const step = { tier: null, outcome: 'deny', by: null, rule: null, id: null, text: 'defaultEndpointToHostAction: Drop' } as const
  return { node: name, endpoint: `Node/${name}`, stage: 'normal', direction: 'ingress', verdict: 'deny', steps: [step], disagreement: null }
}

interface HostQuery extends StageQuery {
  readonly direction: Direction
}

/** By the node itself: what its pods get passes no device of the network. */
function sent({ packet, toPod }: { readonly packet: Packet; readonly toPod: boolean }): readonly HostQuery[] {
  const direction = 'egress'
  const late: HostQuery = { stage: 'normal', direction, packet }
  return toPod ? [late] : [{ stage: 'untracked', direction, packet }, late]
}

/** That of the device that has the node's address; only addresses tell which endpoint that is, unless one alone
 * names a device. */
function deviceEndpoint({ snapshot }: ExplainedCluster, { name }: NodeView, device: string | undefined): HostEndpoint | undefined {
  const all = [...snapshot.hostEndpoints.values()]
  const addresses = snapshot.nodes.get(name)?.addresses ?? []
  const named = all.filter((one) => one.node === name && one.interfaceName !== undefined && one.interfaceName !== WILDCARD)
  const [only] = named
  const found = endpointOf(all, { node: name, name: device ?? '', addresses })
  const isVague = device === undefined && (found === undefined || found.interfaceName === WILDCARD) && named.length === 1
  return isVague ? only : found
}

/** The packet's next node; undefined: it stays, or leaves the cluster. */
export function nextOf(world: ExplainedCluster, { node, arrival, before, packet }: Visit): Omit<Visit, 'packet'> | undefined {
  const to = world.owner(packet.dst)
  if (to.node === undefined || to.node === node.name || node.isSelf(packet.dst)) return undefined
  const isTranslated = before.dst !== packet.dst
  const tunnelled = arrival !== 'here' ? isTranslated : node.isOverlay(packet.dst)
  const src = arrival === 'here' ? sourceOutside(world, node, packet) : packet.src
  return { node: world.view(to.node), arrival: tunnelled ? 'tunnel' : 'network', before: { ...packet, src } }
}

/** A pod whose address means nothing outside leaves as its node. */
function sourceOutside({ snapshot }: ExplainedCluster, node: NodeView, { src, dst }: Packet): Addr {
  const kind = node.addr(dst)?.kind ?? 0
  const masquerades = ((node.addr(src)?.flags ?? 0) & ADDR_MASQUERADE) !== 0
  if (!masquerades || node.isSelf(src) || (kind !== 0 && kind !== ADDR_NODE) || node.isInRange(RANGE_INSIDE, dst)) return src
  const self = snapshot.nodes.get(node.name)
  return (self && nodeAddress(self, isV4(src))) ?? src
}
