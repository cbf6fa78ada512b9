// SPDX-License-Identifier: Apache-2.0
/** deploy/rbac.yaml: what the agent may do with the API server, from what it watches and what it writes. Layer: scripts. */
import { dump } from 'js-yaml'
import { pluralOf } from '#lib/api/resource.ts'
import { WATCHED } from '#lib/api/watched.ts'

const NAME = 'netplane-agent'
const NAMESPACE = 'netplane-system'

export interface RbacRule {
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
  readonly verbs: readonly string[]
  readonly resourceNames?: readonly string[]
}

/** Blocks of addresses that the node takes and gives back, and how the others hear of them; and its status. */
const WRITES: readonly RbacRule[] = [
  { apiGroups: ['netplane.io'], resources: ['ipamblocks'], verbs: ['list', 'create', 'update', 'delete'] },
  { apiGroups: ['netplane.io'], resources: ['clusterinformations'], verbs: ['get', 'create', 'patch'] },
  { apiGroups: ['apps'], resources: ['daemonsets'], resourceNames: [NAME], verbs: ['get'] },
  { apiGroups: [''], resources: ['nodes', 'nodes/status', 'pods/status'], verbs: ['patch'] },
  { apiGroups: [''], resources: ['events'], verbs: ['get', 'create', 'patch'] },
]

/** One rule for each group. */
export function agentRules(): readonly RbacRule[] {
  const groupOf = (apiVersion: string): string => (apiVersion.includes('/') ? (apiVersion.split('/')[0] ?? '') : '')
  const byGroup = Map.groupBy(WATCHED, ({ apiVersion }) => groupOf(apiVersion))
  const reads = [...byGroup].map(([group, watched]): RbacRule => ({
    apiGroups: [group],
    resources: [...new Set(watched.map(({ kind }) => pluralOf(kind)))].sort(),
    verbs: ['list', 'watch'],
  }))
  return [...reads, ...WRITES]
}

export function rbacPage(): string {
  const labels = { 'app.kubernetes.io/name': NAME, 'app.kubernetes.io/part-of': 'netplane' }
  const role = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name: NAME, labels }, rules: agentRules() }
  const documents = [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: NAME, namespace: NAMESPACE, labels } },
    role,
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name: NAME, labels },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: NAME },
      subjects: [{ kind: 'ServiceAccount', name: NAME, namespace: NAMESPACE }],
    },
  ]
  const text = documents.map((document) => dump(document, { lineWidth: 140, noRefs: true })).join('---\n')
  return `# Made by scripts/generate-docs.ts from scripts/pages/rbac.ts: change it there.\n---\n${text}`
}
