// SPDX-License-Identifier: Apache-2.0
/** Objects in sentences. Layer: upgrade (pure). */
import type { ApiObject, Named } from '#lib/api/resource.ts'

/** "DaemonSet kube-system/netplane-node" */
export function objectNameText({ kind, metadata: { namespace, name } }: ApiObject): string {
  return namedText({ kind, namespace, name })
}

export function namedText({ kind, namespace, name }: Pick<Named, 'kind' | 'namespace' | 'name'>): string {
  return `${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`
}
