// SPDX-License-Identifier: Apache-2.0
/** The operator itself: account, rights, Deployment. Layer: lib/render (pure). */
import { asApiObject, type ApiObject } from '../api/resource.ts'
import { account, type RbacRule } from './account.ts'
import { endpointVariables, labelsOf, NODE } from './input.ts'

export const OPERATOR = 'netplane-operator'
const HEALTH_PORT = 9098

export interface OperatorInput {
  readonly namespace: string
  readonly image: string
  /** by which names are resolved before the node's own; none: as on the node */
  readonly nameservers: readonly string[]
}

/** Names of the roles that it gives to others. */
const ROLES = [NODE]

const KEEPS = ['get', 'list', 'watch', 'create', 'patch', 'delete']

/** In all of the cluster. What it gives to others by roles it may give only by these names. */
function operatorRules(): readonly RbacRule[] {
  const rbac = ['rbac.authorization.k8s.io']
  return [
    { apiGroups: ['apiextensions.k8s.io'], resources: ['customresourcedefinitions'], verbs: ['get', 'create', 'patch'] },
    { apiGroups: ['operator.netplane.io'], resources: ['installations'], verbs: ['list', 'watch'] },
    { apiGroups: ['operator.netplane.io'], resources: ['installations/status', 'netplanestatuses/status'], verbs: ['patch'] },
    { apiGroups: ['operator.netplane.io'], resources: ['netplanestatuses'], verbs: KEEPS },
    { apiGroups: ['netplane.io'], resources: ['ippools'], verbs: ['list', 'watch', 'create'] },
    { apiGroups: [''], resources: ['namespaces'], verbs: ['get', 'list', 'watch', 'create', 'patch'] },
    { apiGroups: [''], resources: ['serviceaccounts'], verbs: KEEPS },
    { apiGroups: [''], resources: ['configmaps'], verbs: ['list', 'watch'] },
    { apiGroups: [''], resources: ['nodes', 'pods'], verbs: ['list', 'watch'] },
    { apiGroups: ['apps'], resources: ['daemonsets'], verbs: KEEPS },
    {
      apiGroups: ['admissionregistration.k8s.io'],
      resources: ['validatingadmissionpolicies', 'validatingadmissionpolicybindings'],
      verbs: KEEPS,
    },
    { apiGroups: rbac, resources: ['clusterroles', 'clusterrolebindings', 'roles', 'rolebindings'], verbs: KEEPS },
    { apiGroups: rbac, resources: ['clusterroles', 'roles'], verbs: ['bind', 'escalate'], resourceNames: ROLES },
  ]
}

/** In its own namespace. */
const OWN_RULES: readonly RbacRule[] = [{ apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['get', 'create', 'update'] }]

export function renderOperator(input: OperatorInput): readonly ApiObject[] {
  const { namespace } = input
  return [...account({ name: OPERATOR, namespace, rules: operatorRules(), ownRules: OWN_RULES }), deployment(input)].map(asApiObject)
}

function deployment({ namespace, image, nameservers }: OperatorInput): object {
  const labels = labelsOf(OPERATOR)
  const health = (path: string): object => ({ host: '127.0.0.1', path, port: HEALTH_PORT })
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: OPERATOR, namespace, labels },
    spec: {
      replicas: 1,
      // two at a time would fight for ports of one node; the Lease would let one act alone
      strategy: { type: 'Recreate' },
      selector: { matchLabels: { 'app.kubernetes.io/name': OPERATOR } },
      template: {
        metadata: { labels },
        spec: {
          serviceAccountName: OPERATOR,
          priorityClassName: 'system-cluster-critical',
          // there is no other network before it has made one
          hostNetwork: true,
          dnsPolicy: 'Default',
          ...(nameservers.length === 0 ? {} : { dnsConfig: { nameservers } }),
          enableServiceLinks: false,
          terminationGracePeriodSeconds: 10,
          nodeSelector: { 'kubernetes.io/os': 'linux' },
          tolerations: [{ operator: 'Exists' }],
          containers: [
            {
              name: OPERATOR,
              image,
              imagePullPolicy: 'IfNotPresent',
              command: [OPERATOR],
              args: ['--namespace=$(NAMESPACE)', `--health-port=${HEALTH_PORT}`],
              env: [{ name: 'NAMESPACE', valueFrom: { fieldRef: { fieldPath: 'metadata.namespace' } } }, ...endpointVariables(undefined)],
              securityContext: {
                runAsNonRoot: true,
                runAsUser: 65_532,
                allowPrivilegeEscalation: false,
                readOnlyRootFilesystem: true,
                capabilities: { drop: ['ALL'] },
                seccompProfile: { type: 'RuntimeDefault' },
              },
              livenessProbe: { httpGet: health('/liveness'), initialDelaySeconds: 10, periodSeconds: 10, failureThreshold: 6 },
              readinessProbe: { httpGet: health('/readiness'), periodSeconds: 5 },
              resources: { requests: { cpu: '50m', memory: '110Mi' } },
            },
          ],
        },
      },
    },
  }
}
