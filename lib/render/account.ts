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
  const labels = labelsOf(name)
  const own = { name, namespace, labels }
  const apiVersion = 'rbac.authorization.k8s.io/v1'
  const subjects = [{ kind: 'ServiceAccount', name, namespace }]
  const granted = (kind: 'ClusterRole' | 'Role', metadata: object, given: readonly RbacRule[]): readonly object[] => [
    { apiVersion, kind, metadata, rules: given },
    { apiVersion, kind: `${kind}Binding`, metadata, roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind, name }, subjects },
  ]
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: own },
    ...granted('ClusterRole', { name, labels }, rules),
    ...(ownRules.length === 0 ? [] : granted('Role', own, ownRules)),
  ]
}
