// SPDX-License-Identifier: Apache-2.0
/** What selectors see of an endpoint: its own labels, those of its namespace and service account, and the built-in
 * ones. Layer: lib/model. */
import {
  METADATA_NAME_LABEL,
  NAME_LABEL,
  NAMESPACE_LABEL,
  NAMESPACE_PREFIX,
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

/** Two pods of one namespace with the same own labels and service account have the same. */
export function podLabels(pod: Pick<Pod, 'namespace' | 'labels' | 'serviceAccount'>, from: LabelSources): Labels {
  const { namespace, serviceAccount } = pod
  const account = { namespace, name: serviceAccount }
  const labels = inherited([namespaceProfile(namespace), serviceAccountProfile(namespace, serviceAccount)], from)
  addOwn(labels, pod.labels)
  addNamespace(labels, namespace, from)
  addPrefixed(labels, SERVICE_ACCOUNT_PREFIX, from.serviceAccounts.get(`${namespace}/${account.name}`)?.labels)
  labels.set(SERVICE_ACCOUNT_PREFIX + NAME_LABEL, serviceAccount)
  labels.set(SERVICE_ACCOUNT_LABEL, serviceAccount)
  labels.set(ORCHESTRATOR_LABEL, 'k8s')
  return labels
}

export function hostEndpointLabels(endpoint: HostEndpoint, from: LabelSources): Labels {
  const labels = inherited(endpoint.profiles, from)
  addOwn(labels, endpoint.labels)
  return labels
}

export function networkSetLabels(set: NetworkSet, from: LabelSources): Labels {
  const labels = new Map<string, string>()
  addOwn(labels, set.labels)
  if (set.namespace !== '') addNamespace(labels, set.namespace, from)
  return labels
}

function inherited(profiles: readonly string[], from: LabelSources): Map<string, string> {
  const labels = new Map<string, string>()
  for (const name of profiles) addOwn(labels, from.profiles.get(name)?.labels)
  return labels
}

const BUILT_IN = new Set([NAMESPACE_LABEL, SERVICE_ACCOUNT_LABEL, ORCHESTRATOR_LABEL])

/** A pod's own labels must not be able to say what its namespace is. */
function addOwn(labels: Map<string, string>, own: Labels | undefined): void {
  for (const [key, value] of own ?? []) if (!isReserved(key)) labels.set(key, value)
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
