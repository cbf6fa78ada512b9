// SPDX-License-Identifier: Apache-2.0
/** Flows in the messages of goldmane.proto, and back from what any client may send. Layer: lib/flows/wire. */
import { create } from '@bufbuild/protobuf'
import {
  END_TYPES,
  FLOW_ACTIONS,
  HIT_KINDS,
  NONE,
  REPORTERS,
  WINDOW_SECONDS,
  type EndDetails,
  type EndType,
  type FlowCounts,
  type FlowEnd,
  type FlowKey,
  type FlowService,
  type FlowUpdate,
  type FlowWindow,
  type PolicyHit,
  type PolicyRef,
} from '../flow.ts'
import { byNumber, toBig, toNumber } from './numbers.ts'
import {
  Action,
  EndpointType,
  FlowKeySchema,
  FlowSchema,
  FlowUpdateSchema,
  PolicyHitSchema,
  PolicyKind,
  PolicyTraceSchema,
  Reporter,
  type Flow as FlowMessage,
  type FlowKey as KeyMessage,
  type FlowUpdate as UpdateMessage,
  type PolicyHit as HitMessage,
} from './goldmane_pb.ts'

/** Which of a node's updates it is. */
export type Origin = Pick<FlowUpdate, 'node' | 'sequence'>

/** What an update of one of our nodes, or of another client, says. */
export interface ReceivedUpdate {
  readonly kind: 'update'
  readonly window: FlowWindow
  /** undefined: a client that is none of our nodes */
  readonly origin: Origin | undefined
  /** records that the node has lost since its start */
  readonly lost: number
  /** hits of kinds or actions that this version does not know: the window is without them */
  readonly unknownHits: number
}

export type Received = ReceivedUpdate | { readonly kind: 'unreadable'; readonly reason: string }

const MOST_PORT = 65535n
const ACTION_OF = byNumber(FLOW_ACTIONS, Action)
const KIND_OF = byNumber(HIT_KINDS, PolicyKind)
const REPORTER_OF = byNumber(REPORTERS, Reporter)
const END_TYPE_OF = byNumber<EndType>(END_TYPES, EndpointType)

/** `lost`: records that the node has lost since its start. */
export function updateMessage(update: FlowUpdate, lost: number): UpdateMessage {
  return create(FlowUpdateSchema, { flow: flowMessage(update.window, update), lost: toBig(lost) })
}

/** `origin` is none in what clients ask for: several nodes may have told it. */
export function flowMessage(window: FlowWindow, origin?: Origin): FlowMessage {
  const { key, start, counts, source, dest } = window
  return create(FlowSchema, {
    Key: keyMessage(key),
    startTime: toBig(start),
    endTime: toBig(start + WINDOW_SECONDS),
    sourceLabels: [...source.labels],
    destLabels: [...dest.labels],
    packetsIn: toBig(counts.packetsIn),
    packetsOut: toBig(counts.packetsOut),
    bytesIn: toBig(counts.bytesIn),
    bytesOut: toBig(counts.bytesOut),
    numConnectionsStarted: toBig(counts.started),
    numConnectionsCompleted: toBig(counts.completed),
    numConnectionsLive: toBig(counts.live),
    node: origin?.node ?? '',
    sequence: toBig(origin?.sequence ?? 0),
    sourceIps: [...source.addresses],
    destIps: [...dest.addresses],
    sourcePods: [...source.pods],
    destPods: [...dest.pods],
    sourceNode: source.node,
    destNode: dest.node,
    sourceOwner: source.owner,
    destOwner: dest.owner,
    sourcePorts: window.sourcePorts.map(toBig),
  })
}

export function keyMessage(key: FlowKey): KeyMessage {
  const { source, dest, service } = key
  return create(FlowKeySchema, {
    sourceName: source.name,
    sourceNamespace: source.namespace,
    sourceType: EndpointType[source.type],
    destName: dest.name,
    destNamespace: dest.namespace,
    destType: EndpointType[dest.type],
    destPort: toBig(key.destPort),
    destServiceName: service?.name ?? NONE,
    destServiceNamespace: service?.namespace ?? NONE,
    destServicePortName: service?.portName ?? NONE,
    destServicePort: toBig(service?.port ?? 0),
    proto: key.protocol,
    reporter: Reporter[key.reporter],
    action: Action[key.action],
    policies: create(PolicyTraceSchema, { enforcedPolicies: key.enforced.map(hitMessage), pendingPolicies: key.pending.map(hitMessage) }),
    dropReason: key.reason,
  })
}

export function hitMessage(hit: PolicyHit, index: number): HitMessage {
  const message = create(PolicyHitSchema, {
    ...refFields(hit),
    action: Action[hit.action],
    policyIndex: toBig(index),
    ruleIndex: toBig(hit.rule),
  })
  if (hit.trigger !== undefined) message.trigger = create(PolicyHitSchema, refFields(hit.trigger))
  return message
}

function refFields({ kind, tier, namespace, name }: PolicyRef) {
  return { kind: PolicyKind[kind], tier, namespace, name }
}

/** Of any bytes that are an update: what this version cannot know is left out and counted, or makes it unreadable. */
export function receivedUpdate({ flow, lost }: UpdateMessage): Received {
  if (flow?.Key === undefined) return unreadable(flow === undefined ? 'flow is missing' : 'flow.Key is missing')
  const { Key: key } = flow
  const reporter = REPORTER_OF.get(key.reporter)
  if (reporter === undefined) return unreadable(`flow.Key.reporter is ${key.reporter}`)
  const action = ACTION_OF.get(key.action)
  if (action === undefined || action === 'Pass') return unreadable(`flow.Key.action is ${key.action}`)
  const port = key.destPort > MOST_PORT ? key.destPort : key.destServicePort
  if (port > MOST_PORT) return unreadable(`flow.Key has port ${port}`)
  const enforced = hitsOf(key.policies?.enforcedPolicies ?? [])
  const pending = hitsOf(key.policies?.pendingPolicies ?? [])
  return {
    kind: 'update',
    window: {
      key: {
        source: endOf({ type: key.sourceType, name: key.sourceName, namespace: key.sourceNamespace }),
        dest: endOf({ type: key.destType, name: key.destName, namespace: key.destNamespace }),
        destPort: toNumber(key.destPort),
        service: serviceOf(key),
        protocol: key.proto,
        reporter,
        action,
        reason: key.dropReason,
        enforced: enforced.hits,
        pending: pending.hits,
      },
      start: toNumber(flow.startTime),
      counts: countsOf(flow),
      source: sourceDetails(flow),
      dest: destDetails(flow),
      sourcePorts: flow.sourcePorts.map(toNumber),
    },
    origin: flow.node === '' ? undefined : { node: flow.node, sequence: toNumber(flow.sequence) },
    lost: toNumber(lost),
    unknownHits: enforced.unknown + pending.unknown,
  }
}

function unreadable(reason: string): Received {
  return { kind: 'unreadable', reason }
}

/** What is no pod, node or set is a network, and what has no namespace says so in one way. */
function endOf({ type, name, namespace }: { readonly type: number; readonly name: string; readonly namespace: string }): FlowEnd {
  return { type: END_TYPE_OF.get(type) ?? 'Network', name, namespace: namespace === '' ? NONE : namespace }
}

function serviceOf(key: KeyMessage): FlowService | undefined {
  const name = key.destServiceName
  if (name === '' || name === NONE) return undefined
  const portName = key.destServicePortName === '' ? NONE : key.destServicePortName
  return { namespace: key.destServiceNamespace, name, portName, port: toNumber(key.destServicePort) }
}

function hitsOf(messages: readonly HitMessage[]): { readonly hits: readonly PolicyHit[]; readonly unknown: number } {
  const inOrder = [...messages].sort((a, b) => Number(a.policyIndex - b.policyIndex))
  const hits = inOrder.flatMap((message) => hitOf(message) ?? [])
  return { hits, unknown: messages.length - hits.length }
}

function hitOf(message: HitMessage): PolicyHit | undefined {
  const action = ACTION_OF.get(message.action)
  const ref = refOf(message)
  if (action === undefined || ref === undefined) return undefined
  const trigger = message.trigger === undefined ? undefined : refOf(message.trigger)
  return { ...ref, action, rule: Number(BigInt.asIntN(32, message.ruleIndex)), ...(trigger === undefined ? {} : { trigger }) }
}

function refOf({ kind, tier, namespace, name }: HitMessage): PolicyRef | undefined {
  const known = KIND_OF.get(kind)
  return known === undefined ? undefined : { kind: known, tier, namespace, name }
}

function countsOf(flow: FlowMessage): FlowCounts {
  return {
    packetsIn: toNumber(flow.packetsIn),
    packetsOut: toNumber(flow.packetsOut),
    bytesIn: toNumber(flow.bytesIn),
    bytesOut: toNumber(flow.bytesOut),
    started: toNumber(flow.numConnectionsStarted),
    completed: toNumber(flow.numConnectionsCompleted),
    live: toNumber(flow.numConnectionsLive),
  }
}

function sourceDetails(flow: FlowMessage): EndDetails {
  const { sourceLabels: labels, sourceIps: addresses, sourcePods: pods, sourceNode: node, sourceOwner: owner } = flow
  return { labels, addresses, pods, node, owner }
}

function destDetails(flow: FlowMessage): EndDetails {
  const { destLabels: labels, destIps: addresses, destPods: pods, destNode: node, destOwner: owner } = flow
  return { labels, addresses, pods, node, owner }
}
