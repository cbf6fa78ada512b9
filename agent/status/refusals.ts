// SPDX-License-Identifier: Apache-2.0
/** What is refused at present, as warnings about objects of the API server. Layer: agent/status (pure). */
import { compareText } from '#lib/base/order.ts'
import type { Named } from '#lib/api/resource.ts'
import { WATCHED } from '#lib/api/watch/watch-list.ts'
import type { Problem } from '#lib/store/source.ts'
import type { AgentReason } from './reasons.ts'

export interface Refusal {
  /** another one than those of others */
  readonly key: string
  readonly object: Named
  readonly reason: AgentReason
  readonly message: string
  /** no other node knows of it */
  readonly own: boolean
}

/** What became of a policy that is not as it was written. */
export interface WrongPolicy {
  readonly state: string
  readonly reason: string
}

export interface RefusedNow {
  readonly node: string
  /** by source */
  readonly refused: ReadonlyMap<string, readonly Problem[]>
  /** by ref */
  readonly policies: ReadonlyMap<string, WrongPolicy>
  /** host endpoints of this node that no device is: by ref, why */
  readonly strays?: ReadonlyMap<string, string> | undefined
  /** endpoints of this node whose rules are not all looked at: by ref, what becomes of them */
  readonly cuts?: ReadonlyMap<string, string> | undefined
  /** host endpoints of this node by which it sends nothing: by ref, why */
  readonly silent?: ReadonlyMap<string, string> | undefined
}

/** Each is looked up and written by itself: more than this no administrator reads. */
export const MOST = 200

const OUTCOMES: Readonly<Record<string, string>> = {
  'last-good': 'the last good version stays in force',
  closed: 'closed for all that it selects, as no good version of it is known',
  refused: 'nothing of it is in force',
  'in-part': 'the rest of it is in force',
}

/** By state: what no refusal tells of. */
const EVENTS: Readonly<Record<string, AgentReason>> = { 'no-tier': 'NoTier', 'no-room': 'NoRoom' }

/** Sorted, each once. */
export function refusalsOf({ node, refused, policies, strays, cuts, silent }: RefusedNow): readonly Refusal[] {
  const all = new Map<string, Refusal>()
  const add = (refusal: Omit<Refusal, 'key'>): void => {
    const { apiVersion, kind, namespace = '', name } = refusal.object
    const key = [apiVersion, kind, namespace, name, refusal.reason, refusal.message].join(' ')
    all.set(key, { key, ...refusal })
  }
  for (const [by, problems] of refused) for (const problem of problems) add(refusalOf(problem, { by, node, policies }))
  for (const [ref, { state, reason }] of policies) {
    const event = EVENTS[state]
    const object = event === undefined ? undefined : objectOf(ref)
    // tables are each node's own
    if (event !== undefined && object !== undefined) add({ object, reason: event, message: reason, own: state === 'no-room' })
  }
  const addOwn = (ref: string, reason: AgentReason, message: string): void => {
    const object = objectOf(ref)
    if (object !== undefined) add({ object, reason, message, own: true })
  }
  for (const [ref, why] of strays ?? []) addOwn(ref, 'NoDevice', `${why}: it protects nothing`)
  for (const [ref, what] of cuts ?? []) addOwn(ref, 'TooManyRules', what)
  for (const [ref, why] of silent ?? []) addOwn(ref, 'NothingLeaves', why)
  const found = [...all.values()].sort((a, b) => compareText(a.key, b.key))
  return [...found.slice(0, MOST), ...moreRefusals(node, found.length - MOST)]
}

/** The same warning whatever their number, so that each change of it is no event. */
function moreRefusals(node: string, count: number): readonly Refusal[] {
  if (count <= 0) return []
  const message = `refused besides those with events of their own: ${count}; the agent's log has all of them (object.rejected and policy.*)`
  return [{ ...ofNode(node, 'Refused', message), key: 'more' }]
}

/** What another program's rules on this node do, as a warning about the node. */
export function firewallRefusals(node: string, findings: readonly string[]): readonly Refusal[] {
  return findings.length === 0 ? [] : [ofNode(node, 'ForeignFirewall', findings.join('; '))]
}

/** That the API server is asked by a way that others have to serve, as a warning about the node. */
export function endpointRefusals(node: string, byService: string | undefined): readonly Refusal[] {
  return byService === undefined ? [] : [ofNode(node, 'NoDirectEndpoint', byService)]
}

function ofNode(node: string, reason: AgentReason, message: string): Refusal {
  return { key: `${reason} ${message}`, object: nodeNamed(node), reason, message, own: true }
}

interface Context extends Pick<RefusedNow, 'node' | 'policies'> {
  readonly by: string
}

function refusalOf({ rejected, inPart }: Problem, { by, node, policies }: Context): Omit<Refusal, 'key'> {
  const { ref, path, reason } = rejected
  const object = objectOf(ref)
  const what = [path, reason].filter((part) => part !== '').join(': ')
  if (object === undefined) {
    const message = ref === '' ? what : `${ref}: ${what}`
    return { object: nodeNamed(node), reason: 'Refused', message, own: true }
  }
  const outcome = OUTCOMES[policies.get(ref)?.state ?? (inPart === true ? 'in-part' : '')]
  return {
    object,
    reason: inPart === true ? 'RefusedInPart' : 'Refused',
    message: outcome === undefined ? what : `${what}; ${outcome}`,
    own: isOwn({ ref, by, node }),
  }
}

function nodeNamed(name: string): Named {
  return { apiVersion: 'v1', kind: 'Node', name }
}

/** Pods are compiled by their own node alone, and its settings are read by it alone. */
function isOwn({ ref, by, node }: { readonly ref: string; readonly by: string; readonly node: string }): boolean {
  return (by === 'compiler' && ref.startsWith('Pod/')) || ref === `FelixConfiguration/node.${node}`
}

/** "KubernetesNetworkPolicy/default/web" is a NetworkPolicy of networking.k8s.io; undefined for what is no object. */
function objectOf(ref: string): Named | undefined {
  const [kind = '', ...names] = ref.split('/')
  const watched = WATCHED.find(({ entry }) => entry.kind === kind)
  const name = names.at(-1) ?? ''
  if (watched === undefined || name === '') return undefined
  return { apiVersion: watched.apiVersion, kind: watched.kind, name, namespace: names.length > 1 ? names[0] : undefined }
}
