// SPDX-License-Identifier: Apache-2.0
/** What the agent may do with the API server, from what it watches and what it writes, and of whose.
 * Layer: lib/render (pure). */
import { pluralOf } from '../api/resource.ts'
import { WATCHED } from '../api/watch/watch-list.ts'
import { CONTROLLERS_NAME } from '../kube/objects/automatic-host-endpoint.ts'
import { NETWORK_UNAVAILABLE } from '../kube/objects/conditions.ts'
import { STARTUP_TAINT } from '../kube/objects/startup-taint.ts'
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
  // nodes: the startup taint alone, see OWNED
  { apiGroups: [''], resources: ['nodes', 'nodes/status', 'pods/status'], verbs: ['patch'] },
  { apiGroups: [''], resources: ['events'], verbs: ['get', 'create', 'patch'] },
]

/** In its own namespace alone: how many agents are ready, and whether controllers run. */
function ownReads(daemonSet: string): readonly RbacRule[] {
  return [
    { apiGroups: ['apps'], resources: ['daemonsets'], resourceNames: [daemonSet], verbs: ['get'] },
    { apiGroups: ['coordination.k8s.io'], resources: ['leases'], resourceNames: [CONTROLLERS_NAME], verbs: ['get'] },
  ]
}

/** What the server writes into an object by itself. */
const SERVERS_OWN = ['managedFields', 'resourceVersion', 'generation']

/** Of what the account may change of every node, whose it has to be, and which fields of it: Kubernetes' roles cannot
 * tell. */
interface Owned {
  readonly group: string
  readonly version: string
  readonly resources: readonly [string, ...string[]]
  readonly operations: readonly string[]
  /** where the object has its node's name */
  readonly node: string
  /** also a token that names no node is refused */
  readonly strict?: true
  /** what may change, if not all */
  readonly only?: OnlyChange
}

interface OnlyChange {
  /** expressions that hold for it */
  readonly expressions: readonly string[]
  readonly message: string
}

const OWNED: readonly Owned[] = [
  {
    ...{ group: '', version: 'v1', resources: ['nodes'], operations: ['UPDATE'], node: 'metadata.name', strict: true },
    only: {
      expressions: [
        unchanged('metadata', SERVERS_OWN),
        unchanged('spec', ['taints']),
        unchanged('status', []),
        `${taintsOf('object')}.all(taint, taint in ${taintsOf('oldObject')})`,
        `${taintsOf('oldObject')}.all(taint, taint.key == '${STARTUP_TAINT}' || taint in ${taintsOf('object')})`,
      ],
      message: `agents change nothing of a node but take the taint ${STARTUP_TAINT} away`,
    },
  },
  {
    ...{ group: '', version: 'v1', resources: ['nodes/status'], operations: ['UPDATE'], node: 'metadata.name' },
    only: {
      expressions: [
        unchanged('metadata', SERVERS_OWN),
        unchanged('status', ['conditions']),
        `${othersConditions('object')} == ${othersConditions('oldObject')}`,
      ],
      message: `agents change nothing of a node's status but its condition ${NETWORK_UNAVAILABLE}`,
    },
  },
  { group: '', version: 'v1', resources: ['pods/status'], operations: ['UPDATE'], node: 'spec.nodeName' },
  {
    ...{ group: 'netplane.io', version: 'v3', resources: ['nodenetworks', 'nodenetworks/status'] },
    ...{ operations: ['CREATE', 'UPDATE', 'DELETE'], node: 'metadata.name' },
  },
  { group: 'netplane.io', version: 'v3', resources: ['ipamblocks'], operations: ['CREATE', 'UPDATE'], node: 'spec.node' },
]

/** An expression: a part of the object is as it was, but for some of its fields. */
function unchanged(part: string, but: readonly string[]): string {
  const [now, before] = [`object.?${part}.orValue({})`, `oldObject.?${part}.orValue({})`]
  const isBut = but.length === 0 ? '' : `key in [${but.map((key) => `'${key}'`).join(', ')}] || `
  const same = `${now}.all(key, ${isBut}${now}[?key] == ${before}[?key])`
  return `${same} && ${before}.all(key, ${isBut}key in ${now})`
}

function taintsOf(object: string): string {
  return `${object}.?spec.?taints.orValue([])`
}

function othersConditions(object: string): string {
  return `${object}.?status.?conditions.orValue([]).filter(one, one.type != '${NETWORK_UNAVAILABLE}')`
}

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
function ownedOnly({ group, version, resources, operations, node, strict, only }: Owned, namespace: string): readonly object[] {
  const apiVersion = 'admissionregistration.k8s.io/v1'
  const metadata = { name: `${NODE}-${resources[0].replace('/', '-')}`, labels: labelsOf(NODE) }
  const namesNode = `has(request.userInfo.extra) && '${NODE_CLAIM}' in request.userInfo.extra`
  const isOwn = ['object', 'oldObject'].map((one) => `(${one} == null || ${one}.${node} == variables.node)`).join(' && ')
  const spec = {
    failurePolicy: 'Fail',
    matchConstraints: { resourceRules: [{ apiGroups: [group], apiVersions: [version], resources, operations }] },
    matchConditions: [{ name: 'agent', expression: `request.userInfo.username == 'system:serviceaccount:${namespace}:${NODE}'` }],
    variables: [{ name: 'node', expression: `${namesNode} ? request.userInfo.extra['${NODE_CLAIM}'][0] : ''` }],
    validations: [
      {
        expression: strict === true ? isOwn : `variables.node == '' || ${isOwn}`,
        messageExpression: `variables.node == '' ? 'the token names no node' : 'this is not of node ' + variables.node + ', whose agent asks'`,
        reason: 'Forbidden',
      },
      ...(only?.expressions ?? []).map((expression) => ({ expression, message: only?.message, reason: 'Forbidden' })),
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
