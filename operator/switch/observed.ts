// SPDX-License-Identifier: Apache-2.0
/** What the switch between kube-proxy and us goes by: all of it stands in the cluster. Layer: operator (pure). */
import type { ApiObject } from '#lib/api/resource.ts'
import { fieldsOf, textOf } from '#lib/base/object.ts'
import { findCondition } from '#lib/kube/objects/conditions.ts'
import { nodeNetworkStatusOf, type Mode, type NodeNetworkStatus } from '#lib/kube/objects/node-network-status.ts'
import { ownedFields } from '../objects/owned-fields.ts'
import type { LockTime } from './lock-times.ts'
import { MARK, markOf, type Mark } from './mark.ts'
import type { ProxyFound } from './proxy-found.ts'

export interface Observed {
  /** those that have agents, by their names */
  readonly nodes: readonly NodeFound[]
  /** FelixConfiguration default; undefined: there is none */
  readonly default: Configuration | undefined
  /** FelixConfigurations of one node, by its name; also of nodes that are gone */
  readonly overrides: ReadonlyMap<string, Configuration>
  readonly proxy: ProxyFound
  /** by node that was asked: node ports that answered before, and do not since its proof; none: it was not asked yet */
  readonly outside: ReadonlyMap<string, readonly string[]>
  /** when the datastore was locked */
  readonly locks: readonly LockTime[]
  /** ms since 1970 */
  readonly now: number
}

export interface NodeFound {
  readonly name: string
  readonly uid: string
  readonly isReady: boolean
  /** of one that is not ready: since when, in ms since 1970 */
  readonly unreadySince: number
  readonly isCordoned: boolean
  /** the operator runs there: what it asks of this node never leaves it */
  readonly isOperators: boolean
  /** since when its agent could have said something, in ms since 1970 */
  readonly agentSince: number
  /** undefined: its agent says nothing */
  readonly status: NodeNetworkStatus | undefined
}

export interface Configuration {
  readonly generation: number
  /** undefined: it says nothing of it */
  readonly mode: Mode | undefined
  readonly mark: Mark | undefined
  /** its mark was of a node that is gone: one that has its name now was never asked */
  readonly isInherited: boolean
  /** rules of kube-proxy stay where we serve */
  readonly keepsProxyRules: boolean
  /** we have applied something of it */
  readonly isOurs: boolean
}

export interface ObservedInput {
  /** that the operator runs on */
  readonly ownNode: string | undefined
  readonly nodes: Iterable<ApiObject>
  /** labels that a node with an agent has */
  readonly nodeSelector: Readonly<Record<string, unknown>>
  readonly nodeNetworks: ReadonlyMap<string, ApiObject>
  /** DaemonSet of the agents; undefined: there is none yet */
  readonly agents: ApiObject | undefined
  readonly agentPods: Iterable<ApiObject>
  /** by node whose agent had said something: when that was seen to be gone, in ms since 1970 */
  readonly lostAt: ReadonlyMap<string, number>
  readonly configurations: Iterable<ApiObject>
  readonly proxy: ProxyFound
  readonly locks: readonly LockTime[]
  readonly now: number
}

/** What agents do where no FelixConfiguration says anything. */
export const UNSAID: Mode = 'BPF'

const NODE = 'node.'

export function observe(input: ObservedInput): Observed {
  const { nodes, ownNode, nodeSelector, nodeNetworks, agents, agentPods, lostAt, configurations, proxy, locks, now } = input
  const all = new Map(Array.from(configurations, (one) => [one.metadata.name, configurationOf(one)]))
  const podsSince = new Map(Array.from(agentPods, (pod) => [textOf(fieldsOf(pod['spec'])['nodeName']), madeAt(pod)]))
  // without a pod it is its controller that says nothing
  const agentSince = ({ metadata: { name } }: ApiObject): number => Math.max(podsSince.get(name) ?? madeAt(agents), lostAt.get(name) ?? 0)
  const found = nodesWithAgents(nodes, nodeSelector)
    .map((node) => ({
      ...nodeFound(node, nodeNetworks.get(`/${node.metadata.name}`), agentSince(node)),
      isOperators: node.metadata.name === ownNode,
    }))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
  const uids = new Map(found.map(({ name, uid }) => [name, uid]))
  const overrides = [...all].flatMap(([name, one]) => (name.startsWith(NODE) ? [[name.slice(NODE.length), one] as const] : []))
  return {
    nodes: found,
    default: all.get('default'),
    overrides: new Map(overrides.map(([node, one]) => [node, ofNode(one, uids.get(node))])),
    proxy,
    outside: new Map(),
    locks,
    now,
  }
}

/** That have one, or are to have one. */
export function nodesWithAgents(nodes: Iterable<ApiObject>, nodeSelector: ObservedInput['nodeSelector']): readonly ApiObject[] {
  const wanted = Object.entries({ 'kubernetes.io/os': 'linux', ...nodeSelector })
  return [...nodes].filter(({ metadata }) => wanted.every(([key, value]) => metadata.labels?.[key] === value))
}

export function overrideName(node: string): string {
  return `${NODE}${node}`
}

/** That of all nodes without an override. */
export function defaultMode({ default: found }: Pick<Observed, 'default'>): Mode {
  return found?.mode ?? UNSAID
}

/** That a node is asked for. */
export function askedMode(node: string, observed: Pick<Observed, 'default' | 'overrides'>): Mode {
  return observed.overrides.get(node)?.mode ?? defaultMode(observed)
}

function nodeFound(node: ApiObject, network: ApiObject | undefined, agentSince: number): Omit<NodeFound, 'isOperators'> {
  const ready = findCondition(node, 'Ready')
  const since = Date.parse(ready?.since ?? '') || madeAt(node)
  return {
    name: node.metadata.name,
    uid: node.metadata.uid ?? '',
    isReady: ready?.status === 'True',
    unreadySince: since,
    isCordoned: fieldsOf(node['spec'])['unschedulable'] === true,
    agentSince: Math.max(since, agentSince),
    status: nodeNetworkStatusOf(network?.['status']),
  }
}

function madeAt(object: ApiObject | undefined): number {
  return Date.parse(object?.metadata.creationTimestamp ?? '') || 0
}

/** `uid`: of the node that has its name; undefined: there is none. */
export function ofNode(override: Configuration, uid: string | undefined): Configuration {
  const { mark } = override
  const isInherited = uid !== undefined && mark?.uid !== undefined && mark.uid !== uid
  return isInherited ? { ...override, mark: undefined, isInherited } : override
}

/** Something of it. */
export function isMadeByUs(object: ApiObject): boolean {
  return ownedFields(object) !== '' || object.metadata.annotations?.[MARK] !== undefined
}

export function configurationOf(object: ApiObject): Configuration {
  const { bpfEnabled, bpfProxyIptablesCleanupEnabled: cleans } = fieldsOf(object['spec'])
  return {
    generation: object.metadata.generation ?? 0,
    mode: typeof bpfEnabled === 'boolean' ? (bpfEnabled ? 'BPF' : 'Standard') : undefined,
    mark: markOf(object),
    isInherited: false,
    keepsProxyRules: cleans === false,
    isOurs: isMadeByUs(object),
  }
}
