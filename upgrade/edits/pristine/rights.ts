// SPDX-License-Identifier: Apache-2.0
/** Accounts of an older manifest with their roles. Layer: upgrade (pure). */
import type { RbacRule } from '#lib/render/account.ts'
import { CONTROLLERS, NAMESPACE, PLUGIN_ACCOUNT, type Template } from './template.ts'

const API_VERSION = 'rbac.authorization.k8s.io/v1'
const STORED = 'crd.netplane.io'

interface Role {
  readonly name: string
  readonly binding: string
  readonly subjects: readonly object[]
  readonly rules: readonly RbacRule[]
}

export function rights(template: Template): readonly object[] {
  const accounts = [template.node, CONTROLLERS, ...(template.has('pluginAccount') ? [PLUGIN_ACCOUNT] : [])]
  return [
    ...accounts.map((name) => ({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace: NAMESPACE } })),
    ...rolesOf(template).flatMap(objectsOf),
  ]
}

function rolesOf(template: Template): readonly Role[] {
  const { node, variant, has } = template
  const binding = variant === 'canal' ? 'canal-netplane' : node
  return [
    { name: 'netplane-node', binding, subjects: [accountOf(node)], rules: nodeRules(template) },
    ...(variant === 'canal' ? [{ name: 'flannel', binding: 'canal-flannel', subjects: [accountOf(node)], rules: FLANNEL_RULES }] : []),
    { name: CONTROLLERS, binding: CONTROLLERS, subjects: [accountOf(CONTROLLERS)], rules: CONTROLLERS_RULES },
    ...(has('pluginAccount')
      ? [{ name: PLUGIN_ACCOUNT, binding: PLUGIN_ACCOUNT, subjects: [accountOf(PLUGIN_ACCOUNT)], rules: PLUGIN_RULES }]
      : []),
    ...(has('tiers') ? [TIER_GETTER] : []),
  ]
}

function objectsOf({ name, binding, subjects, rules }: Role): readonly object[] {
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name }
  return [
    { apiVersion: API_VERSION, kind: 'ClusterRole', metadata: { name }, rules },
    { apiVersion: API_VERSION, kind: 'ClusterRoleBinding', metadata: { name: binding }, roleRef, subjects },
  ]
}

function accountOf(name: string): object {
  return { kind: 'ServiceAccount', name, namespace: NAMESPACE }
}

const BLOCKS = ['ipamblocks', 'blockaffinities', 'ipamhandles']

function nodeRules({ has, isNetworking }: Template): readonly RbacRule[] {
  return [
    { apiGroups: [''], resources: ['pods', 'nodes', 'namespaces'], verbs: ['get', 'list', 'watch'] },
    { apiGroups: [''], resources: ['endpoints', 'services', 'serviceaccounts'], verbs: ['get', 'list', 'watch'] },
    { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['list', 'watch'] },
    { apiGroups: [''], resources: ['configmaps'], verbs: ['get'] },
    { apiGroups: [''], resources: ['nodes/status'], verbs: ['patch', 'update'] },
    { apiGroups: [''], resources: ['pods/status'], verbs: ['patch'] },
    { apiGroups: ['networking.k8s.io'], resources: ['networkpolicies'], verbs: ['list', 'watch'] },
    { apiGroups: [STORED], resources: [...STORED_KINDS, ...(has('tiers') ? ['tiers'] : [])], verbs: ['get', 'list', 'watch'] },
    { apiGroups: [STORED], resources: ['ippools', 'felixconfigurations', 'clusterinformations'], verbs: ['create', 'update'] },
    ...(isNetworking ? [{ apiGroups: [STORED], resources: BLOCKS, verbs: ['get', 'list', 'create', 'update', 'delete'] }] : []),
    ...(has('pluginAccount')
      ? [{ apiGroups: [''], resources: ['serviceaccounts/token'], resourceNames: [PLUGIN_ACCOUNT], verbs: ['create'] }]
      : []),
  ]
}

const STORED_KINDS = [
  ...['felixconfigurations', 'clusterinformations', 'ippools', 'hostendpoints', 'globalnetworkpolicies', 'networkpolicies'],
  ...['globalnetworksets', 'networksets', 'blockaffinities', 'bgpconfigurations', 'bgppeers'],
]

const CONTROLLERS_RULES: readonly RbacRule[] = [
  { apiGroups: [''], resources: ['nodes', 'pods'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: [STORED], resources: [...BLOCKS, 'hostendpoints'], verbs: ['get', 'list', 'watch', 'create', 'update', 'delete'] },
  { apiGroups: [STORED], resources: ['ippools', 'clusterinformations'], verbs: ['get', 'list', 'watch', 'create', 'update'] },
  { apiGroups: [STORED], resources: ['controllersconfigurations'], verbs: ['get', 'list', 'watch', 'create', 'update'] },
]

const PLUGIN_RULES: readonly RbacRule[] = [
  { apiGroups: [''], resources: ['pods', 'nodes', 'namespaces'], verbs: ['get'] },
  { apiGroups: [''], resources: ['pods/status'], verbs: ['patch'] },
  { apiGroups: [STORED], resources: [...BLOCKS, 'ippools', 'clusterinformations'], verbs: ['get', 'list', 'create', 'update', 'delete'] },
]

const FLANNEL_RULES: readonly RbacRule[] = [
  { apiGroups: [''], resources: ['pods'], verbs: ['get'] },
  { apiGroups: [''], resources: ['nodes'], verbs: ['list', 'watch'] },
  { apiGroups: [''], resources: ['nodes/status'], verbs: ['patch'] },
]

const TIER_GETTER: Role = {
  name: 'netplane-tier-getter',
  binding: 'netplane-tier-getter',
  subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'system:kube-controller-manager' }],
  rules: [{ apiGroups: ['netplane.io'], resources: ['tiers'], verbs: ['get'] }],
}
