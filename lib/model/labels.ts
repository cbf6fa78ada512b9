// SPDX-License-Identifier: Apache-2.0
/** Labels: names of the built-in ones, and equal maps held once. Layer: lib/model. */

export type Labels = ReadonlyMap<string, string>

/** What an endpoint says of its namespace and of its service account has these in front. */
export const NAMESPACE_PREFIX = 'pcns.'
export const SERVICE_ACCOUNT_PREFIX = 'pcsa.'

/** On pods: the namespace they are in. On nothing else but namespaced network sets. */
export const NAMESPACE_LABEL = 'netplane.io/namespace'
export const SERVICE_ACCOUNT_LABEL = 'netplane.io/serviceaccount'
/** "k8s" on pods */
export const ORCHESTRATOR_LABEL = 'netplane.io/orchestrator'
/** On namespaces and service accounts: their name. */
export const NAME_LABEL = 'netplane.io/name'
/** On namespaces: their name, as the API server has it. */
export const METADATA_NAME_LABEL = 'kubernetes.io/metadata.name'

export const NO_LABELS: Labels = new Map()
