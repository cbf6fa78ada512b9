// SPDX-License-Identifier: Apache-2.0
/** What selectors see of an endpoint: its own labels, those of its namespace and service account, and the built-in
 * ones. Layer: lib/model. */
import {
  LayeredLabels,
  METADATA_NAME_LABEL,
  NAME_LABEL,
  NAMESPACE_LABEL,
  NAMESPACE_PREFIX,
  NO_LABELS,
  ORCHESTRATOR_LABEL,
  SERVICE_ACCOUNT_LABEL,
  SERVICE_ACCOUNT_PREFIX,
} from './labels.ts'
import type { Labels } from './labels.ts'
import type { Pod } from './pod.ts'
import type { HostEndpoint, NetworkSet } from './policy.ts'
import type { Snapshot } from './snapshot.ts'

/** Where inherited labels are looked up. */
export type LabelSources = Pick<Snapshot, 'namespaces' | 'serviceAccounts' | 'profiles'>

/** Profiles that a pod has without naming them. */
export function namespaceProfile(namespace: string): string {
  return `kns.${namespace}`
}

export function serviceAccountProfile(namespace: string, name: string): string {
  return `ksa.${namespace}.${name}`
}

/** A profile that allows everything unless a Profile of this name says otherwise: automatic host endpoints name it. */
export const DEFAULT_ALLOW_PROFILE = 'netplane-default-allow'

/** Pods of one namespace and service account inherit the same. */
export function podLabels(pod: Pick<Pod, 'namespace' | 'labels' | 'serviceAccount'>, from: LabelSources): Labels {
  const { namespace, serviceAccount } = pod
  const profiles = [namespaceProfile(namespace), serviceAccountProfile(namespace, serviceAccount)]
  const account = from.serviceAccounts.get(`${namespace}/${serviceAccount}`)
  const sources = [account, from.namespaces.get(namespace), ...profiles.map((name) => from.profiles.get(name))]
  const inherited = madeOnce(`Pod ${namespace}/${serviceAccount}`, sources, () => {
    const labels = ofProfiles(profiles, from)
    addNamespace(labels, namespace, from)
    addPrefixed(labels, SERVICE_ACCOUNT_PREFIX, account?.labels)
    labels.set(SERVICE_ACCOUNT_PREFIX + NAME_LABEL, serviceAccount)
    labels.set(SERVICE_ACCOUNT_LABEL, serviceAccount)
    labels.set(ORCHESTRATOR_LABEL, 'k8s')
    return labels
  })
  return new LayeredLabels(unreserved(pod.labels), inherited)
}

export function hostEndpointLabels({ labels, profiles }: HostEndpoint, from: LabelSources): Labels {
  const sources = profiles.map((name) => from.profiles.get(name))
  const inherited = madeOnce(`HostEndpoint ${JSON.stringify(profiles)}`, sources, () => ofProfiles(profiles, from))
  return new LayeredLabels(unreserved(labels), inherited)
}

export function networkSetLabels({ namespace, labels }: NetworkSet, from: LabelSources): Labels {
  if (namespace === '') return unreserved(labels)
  const inherited = madeOnce(`NetworkSet ${namespace}`, [from.namespaces.get(namespace)], () => {
    const ofNamespace = new Map<string, string>()
    addNamespace(ofNamespace, namespace, from)
    return ofNamespace
  })
  return new LayeredLabels(unreserved(labels), inherited)
}

interface Made {
  readonly sources: readonly unknown[]
  readonly labels: Labels
}

/** Labels are kept with their first source, the most special one, and go with it. The key tells who inherits. */
const made = new WeakMap<object, Map<string, Made>>()
/** A source may have heirs that come and go while it stays. */
const MOST_MADE = 256

/** The same labels for as long as the sources are the same objects. */
function madeOnce(heirs: string, sources: readonly (object | undefined)[], make: () => Labels): Labels {
  const first = sources.find((source) => source !== undefined)
  if (first === undefined) return make()
  const known = made.get(first) ?? new Map<string, Made>()
  made.set(first, known)
  const before = known.get(heirs)
  if (before?.sources.every((source, at) => source === sources[at]) === true) return before.labels
  if (known.size >= MOST_MADE) known.clear()
  const labels = make()
  known.set(heirs, { sources, labels })
  return labels
}

/** Of labels that two of them have, the later one's. */
function ofProfiles(names: readonly string[], from: LabelSources): Map<string, string> {
  const labels = new Map<string, string>()
  for (const name of names) for (const [key, value] of unreserved(from.profiles.get(name)?.labels ?? NO_LABELS)) labels.set(key, value)
  return labels
}

const BUILT_IN = new Set([NAMESPACE_LABEL, SERVICE_ACCOUNT_LABEL, ORCHESTRATOR_LABEL])

const checked = new WeakMap<Labels, Labels>()

/** A pod's own labels must not be able to say what its namespace is. */
function unreserved(own: Labels): Labels {
  const known = checked.get(own)
  if (known !== undefined) return known
  const labels = [...own]
  const rest = labels.filter(([key]) => !isReserved(key))
  const result = rest.length === labels.length ? own : new Map(rest)
  checked.set(own, result)
  return result
}

function isReserved(key: string): boolean {
  return key.startsWith(NAMESPACE_PREFIX) || key.startsWith(SERVICE_ACCOUNT_PREFIX) || BUILT_IN.has(key)
}

/** A namespace that only pods speak of has its name alone. */
function addNamespace(labels: Map<string, string>, namespace: string, from: LabelSources): void {
  addPrefixed(labels, NAMESPACE_PREFIX, from.namespaces.get(namespace)?.labels)
  labels.set(NAMESPACE_PREFIX + METADATA_NAME_LABEL, namespace)
  labels.set(NAMESPACE_PREFIX + NAME_LABEL, namespace)
  labels.set(NAMESPACE_LABEL, namespace)
}

function addPrefixed(labels: Map<string, string>, prefix: string, own: Labels | undefined): void {
  for (const [key, value] of own ?? []) labels.set(prefix + key, value)
}
