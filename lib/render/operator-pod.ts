// SPDX-License-Identifier: Apache-2.0
/** The operator itself: account, rights, Deployment. Layer: lib/render (pure). */
import { asApiObject, type ApiObject } from '../api/resource.ts'
import { account, granted, type RbacRule } from './account.ts'
import { CLEANUP } from './cleanup-pod.ts'
import { CONTROLLERS_NAME } from '../kube/objects/automatic-host-endpoint.ts'
import { CONTROL_TOLERATIONS, controlDeployment, controlPodSpec } from './control-pod.ts'
import { userRoles } from './definitions.ts'
import { labelsOf, NODE } from './input.ts'
import { ENDPOINT_PROOF, PREFLIGHT } from './preflight-pod.ts'
import { PLATFORMS } from './providers.ts'

export const OPERATOR = 'netplane-operator'
/** asks node ports of the operator's own node from another one; its account is the agents' */
export const OUTSIDE = 'netplane-outside'
const HEALTH_PORT = 9098

/** Of its pods, what an administrator may choose, with what counts where nothing is chosen. */
export const OPERATOR_PODS = {
  imagePullSecrets: [],
  podAnnotations: {},
  // name servers and the like, beside the node's own
  dnsConfig: {},
  resources: { requests: { cpu: '50m', memory: '110Mi' } },
  nodeSelector: { 'kubernetes.io/os': 'linux' },
  tolerations: CONTROL_TOLERATIONS,
} as const

export interface OperatorInput {
  readonly namespace: string
  readonly image: string
  /** as Kubernetes has each; what is empty is left out */
  readonly pods: Readonly<Record<keyof typeof OPERATOR_PODS, object | string>>
}

const POLICIES = [
  'networkpolicies',
  'globalnetworkpolicies',
  'stagednetworkpolicies',
  'stagedglobalnetworkpolicies',
  'wafpolicies',
  'globalwafpolicies',
]

const READS = ['get', 'list', 'watch']
const WRITES = ['create', 'patch', 'delete']
const KEEPS = [...READS, ...WRITES]

/** What it runs, by name: other workloads it cannot change. A name that an older version had has to stay here for as
 * long as that is to be taken away. */
const ACCOUNTS = [NODE, PREFLIGHT, ENDPOINT_PROOF, CLEANUP]
const DAEMON_SETS = [...ACCOUNTS, OUTSIDE]
const DEPLOYMENTS = [CONTROLLERS_NAME]

/** In all of the cluster. What is named is not held to a namespace as well: that of the agents is made by the operator
 * itself, and a binding in it would count only some time after it is made. A create by server-side apply names its
 * object. Reads go by labels. A role with more than it has itself it may give to others only by its name. */
function operatorRules(): readonly RbacRule[] {
  const rbac = ['rbac.authorization.k8s.io']
  return [
    { apiGroups: ['apiextensions.k8s.io'], resources: ['customresourcedefinitions'], verbs: ['get', 'create', 'update'] },
    { apiGroups: ['operator.netplane.io'], resources: ['installations'], verbs: ['list', 'watch', 'patch'] },
    { apiGroups: ['operator.netplane.io'], resources: ['installations/status', 'netplanestatuses/status'], verbs: ['patch'] },
    { apiGroups: ['operator.netplane.io'], resources: ['netplanestatuses'], verbs: ['list', 'watch', 'create', 'patch', 'delete'] },
    { apiGroups: ['netplane.io'], resources: ['ippools'], verbs: ['list', 'watch', 'create'] },
    { apiGroups: ['netplane.io'], resources: ['clusterinformations', 'nodenetworks'], verbs: ['list', 'watch'] },
    // what agents have said goes with them
    { apiGroups: ['netplane.io'], resources: ['nodenetworks/status'], verbs: ['patch'] },
    { apiGroups: [''], resources: ['nodes/status'], verbs: ['patch'] },
    // the mode of nodes
    { apiGroups: ['netplane.io'], resources: ['felixconfigurations'], verbs: ['list', 'watch', 'create', 'patch', 'delete'] },
    // OpenShift's own, by which its kube-proxy is stopped
    { apiGroups: ['operator.openshift.io'], resources: ['networks'], resourceNames: ['cluster'], verbs: ['get', 'patch'] },
    { apiGroups: [''], resources: ['namespaces'], verbs: ['get', 'list', 'watch', 'create', 'patch'] },
    { apiGroups: [''], resources: ['serviceaccounts', 'configmaps'], verbs: READS },
    { apiGroups: [''], resources: ['serviceaccounts'], resourceNames: [...ACCOUNTS, ...DEPLOYMENTS], verbs: WRITES },
    { apiGroups: [''], resources: ['configmaps'], resourceNames: [PREFLIGHT, ENDPOINT_PROOF], verbs: WRITES },
    { apiGroups: [''], resources: ['services'], verbs: ['get', 'list'] },
    { apiGroups: ['networking.k8s.io'], resources: ['networkpolicies'], verbs: ['list'] },
    // what is asked for and not supported, whether the server knows these kinds or not
    { apiGroups: ['netplane.io'], resources: POLICIES, verbs: ['list'] },
    { apiGroups: ['operator.netplane.io'], resources: ['applicationlayers'], verbs: ['list'] },
    { apiGroups: [''], resources: ['nodes', 'pods'], verbs: ['list', 'watch'] },
    { apiGroups: [''], resources: ['events'], verbs: ['get', 'create', 'patch'] },
    { apiGroups: ['apps'], resources: ['daemonsets', 'deployments'], verbs: READS },
    { apiGroups: ['apps'], resources: ['daemonsets'], resourceNames: DAEMON_SETS, verbs: WRITES },
    { apiGroups: ['apps'], resources: ['deployments'], resourceNames: DEPLOYMENTS, verbs: WRITES },
    // where the server has them
    { apiGroups: ['security.openshift.io'], resources: ['securitycontextconstraints'], verbs: KEEPS },
    {
      apiGroups: ['admissionregistration.k8s.io'],
      resources: ['validatingadmissionpolicies', 'validatingadmissionpolicybindings'],
      verbs: KEEPS,
    },
    { apiGroups: rbac, resources: ['clusterroles', 'clusterrolebindings', 'roles', 'rolebindings'], verbs: KEEPS },
    // of the others' roles it has all itself
    { apiGroups: rbac, resources: ['clusterroles', 'roles'], verbs: ['bind', 'escalate'], resourceNames: [NODE, CONTROLLERS_NAME] },
    { apiGroups: rbac, resources: ['clusterroles'], verbs: ['bind'], resourceNames: [OPERATOR_SECRETS] },
  ]
}

/** Of an account, in its namespace: OpenShift lets it have pods with the node's network and a user of their own. No
 * narrower constraints of OpenShift's allow both. */
export const OPENSHIFT_RULE: RbacRule = {
  apiGroups: ['security.openshift.io'],
  resources: ['securitycontextconstraints'],
  resourceNames: ['privileged'],
  verbs: ['use'],
}

/** In its own namespace: the Lease, and pull secrets as the administrator has them. */
const OWN_RULES: readonly RbacRule[] = [
  { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['get', 'create', 'update'] },
  { apiGroups: [''], resources: ['secrets'], verbs: ['list', 'watch'] },
  OPENSHIFT_RULE,
]

/** Where kube-proxy is stopped by a node selector: that one alone. */
const { namespace: PROXY_NAMESPACE, daemonSet: PROXY } = PLATFORMS.Generic.kubeProxy
const PROXY_RULES: readonly RbacRule[] = [{ apiGroups: ['apps'], resources: ['daemonsets'], resourceNames: [PROXY], verbs: ['patch'] }]

/** A role that no account has in all of the cluster: the operator binds itself to it where it keeps copies of pull
 * secrets. A binding in the manifest would need that namespace in it as well, which would then go with the manifest. */
export const OPERATOR_SECRETS = 'netplane-operator-secrets'

/** The operator of this namespace may keep secrets in that one. */
export function secretsBinding({ from, to }: { readonly from: string; readonly to: string }): object {
  return {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { name: OPERATOR_SECRETS, namespace: to, labels: labelsOf(OPERATOR) },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: OPERATOR_SECRETS },
    subjects: [{ kind: 'ServiceAccount', name: OPERATOR, namespace: from }],
  }
}

export function renderOperator(input: OperatorInput): readonly ApiObject[] {
  const { namespace } = input
  const secrets = {
    ...{
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: OPERATOR_SECRETS, labels: labelsOf(OPERATOR) },
    },
    rules: [{ apiGroups: [''], resources: ['secrets'], verbs: KEEPS }],
  }
  const rights = account({ name: OPERATOR, namespace, rules: operatorRules(), ownRules: OWN_RULES })
  const ofProxy = granted({ name: OPERATOR, namespace, within: PROXY_NAMESPACE, rules: PROXY_RULES })
  return [...rights, ...ofProxy, secrets, ...userRoles(), deployment(input)].map(asApiObject)
}

function deployment({ namespace, image, pods }: OperatorInput): object {
  const args = ['--namespace=$(NAMESPACE)', '--node=$(NODE_NAME)', `--health-port=${HEALTH_PORT}`]
  return controlDeployment({ program: OPERATOR, namespace, image, pods, args, endpoint: undefined, healthPort: HEALTH_PORT })
}

export interface OperatorPod {
  readonly account: string
  readonly args: readonly string[]
  /** of its container */
  readonly more: object
}

/** A pod of the operator's program. */
export function operatorPodSpec({ image, pods }: OperatorInput, pod: OperatorPod): object {
  return controlPodSpec({ ...pod, program: OPERATOR, image, pods, endpoint: undefined })
}
