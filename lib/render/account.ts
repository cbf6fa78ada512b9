// SPDX-License-Identifier: Apache-2.0
/** A service account with its roles. Layer: lib/render (pure). */
import { labelsOf } from './input.ts'

export interface RbacRule {
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
  readonly verbs: readonly string[]
  readonly resourceNames?: readonly string[]
}

export interface Account {
  /** of the account and of its roles */
  readonly name: string
  readonly namespace: string
  /** in all of the cluster */
  readonly rules: readonly RbacRule[]
  /** in its namespace */
  readonly ownRules: readonly RbacRule[]
}

export function account({ name, namespace, rules, ownRules }: Account): readonly object[] {
  const metadata = { name, namespace, labels: labelsOf(name) }
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata },
    ...granted({ name, namespace, within: undefined, rules }),
    ...(ownRules.length === 0 ? [] : granted({ name, namespace, within: namespace, rules: ownRules })),
  ]
}

export interface Grant {
  /** of the account and of the role */
  readonly name: string
  /** of the account */
  readonly namespace: string
  /** where it holds; undefined: in all of the cluster */
  readonly within: string | undefined
  readonly rules: readonly RbacRule[]
}

export function granted({ name, namespace, within, rules }: Grant): readonly object[] {
  const apiVersion = 'rbac.authorization.k8s.io/v1'
  const kind = within === undefined ? 'ClusterRole' : 'Role'
  const metadata = { name, ...(within !== undefined && { namespace: within }), labels: labelsOf(name) }
  const subjects = [{ kind: 'ServiceAccount', name, namespace }]
  return [
    { apiVersion, kind, metadata, rules },
    { apiVersion, kind: `${kind}Binding`, metadata, roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind, name }, subjects },
  ]
}
