// SPDX-License-Identifier: Apache-2.0
/** What the agent may do with the API server, from what it watches and what it writes, and of whose.
 * Layer: lib/render (pure). */
import { pluralOf } from '../api/resource.ts'
import { WATCHED } from '../api/watch/watch-list.ts'
import { CONTROLLERS_NAME } from '../kube/objects/automatic-host-endpoint.ts'
import { account, type RbacRule } from './account.ts'
import { labelsOf, NODE, type RenderInput } from './input.ts'

/** Blocks of addresses that the node takes and gives back, and how the others hear of them; and its status. */
const WRITES: readonly RbacRule[] = [
  { apiGroups: ['netplane.io'], resources: ['ipamblocks'], verbs: ['list', 'create', 'update', 'delete'] },
  { apiGroups: ['netplane.io'], resources: ['clusterinformations'], verbs: ['get', 'create', 'patch'] },
  // an account that sets an object's owner must have the right to delete it, where admission has
  // OwnerReferencesPermissionEnforcement
  { apiGroups: ['netplane.io'], resources: ['nodenetworks'], verbs: ['create', 'patch', 'delete'] },
  { apiGroups: ['netplane.io'], resources: ['nodenetworks/status'], verbs: ['patch'] },
  { apiGroups: [''], resources: ['nodes/status', 'pods/status'], verbs: ['patch'] },
  { apiGroups: [''], resources: ['events'], verbs: ['get', 'create', 'patch'] },
]

/** In its own namespace alone: how many agents are ready, and whether controllers run. */
function ownReads(daemonSet: string): readonly RbacRule[] {
  return [
    { apiGroups: ['apps'], resources: ['daemonsets'], resourceNames: [daemonSet], verbs: ['get'] },
    { apiGroups: ['coordination.k8s.io'], resources: ['leases'], resourceNames: [CONTROLLERS_NAME], verbs: ['get'] },
  ]
}

/** Of what the account may change of every node, whose it has to be: Kubernetes' roles cannot tell. */
const OWNED = [
  { group: '', version: 'v1', resources: ['nodes/status'], operations: ['UPDATE'], node: 'metadata.name' },
  { group: '', version: 'v1', resources: ['pods/status'], operations: ['UPDATE'], node: 'spec.nodeName' },
  {
    ...{ group: 'netplane.io', version: 'v3', resources: ['nodenetworks', 'nodenetworks/status'] },
    ...{ operations: ['CREATE', 'UPDATE', 'DELETE'], node: 'metadata.name' },
  },
  { group: 'netplane.io', version: 'v3', resources: ['ipamblocks'], operations: ['CREATE', 'UPDATE'], node: 'spec.node' },
] as const

/** A pod's token names the pod's node here; a token that was made by hand names none. */
const NODE_CLAIM = 'authentication.kubernetes.io/node-name'

/** In all of the cluster: of what is read one rule for each group. */
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

/** A policy, and that it is in force. */
function ownedOnly({ group, version, resources, operations, node }: (typeof OWNED)[number], namespace: string) {
  const apiVersion = 'admissionregistration.k8s.io/v1'
  const metadata = { name: `${NODE}-${resources[0].replace('/', '-')}`, labels: labelsOf(NODE) }
  const extra = `request.userInfo.extra['${NODE_CLAIM}']`
  const spec = {
    failurePolicy: 'Fail',
    matchConstraints: { resourceRules: [{ apiGroups: [group], apiVersions: [version], resources, operations }] },
    matchConditions: [
      { name: 'agent', expression: `request.userInfo.username == 'system:serviceaccount:${namespace}:${NODE}'` },
      { name: 'of-a-node', expression: `has(request.userInfo.extra) && '${NODE_CLAIM}' in request.userInfo.extra` },
    ],
    variables: [{ name: 'node', expression: `${extra}[0]` }],
    validations: [
      {
        expression: ['object', 'oldObject'].map((one) => `(${one} == null || ${one}.${node} == variables.node)`).join(' && '),
        messageExpression: `'this is not of node ' + variables.node + ', whose agent asks'`,
        reason: 'Forbidden',
      },
    ],
  }
  return [
    { apiVersion, kind: 'ValidatingAdmissionPolicy', metadata, spec },
    {
      apiVersion,
      kind: 'ValidatingAdmissionPolicyBinding',
      metadata,
      spec: { policyName: metadata.name, validationActions: ['Deny'] },
    },
  ]
}

/** The account, its roles, and what admission keeps it to. */
export function agentRights({ namespace, daemonSet = NODE }: Pick<RenderInput, 'namespace' | 'daemonSet'>): readonly object[] {
  return [
    ...account({ name: NODE, namespace, rules: agentRules(), ownRules: ownReads(daemonSet) }),
    ...OWNED.flatMap((owned) => ownedOnly(owned, namespace)),
  ]
}
