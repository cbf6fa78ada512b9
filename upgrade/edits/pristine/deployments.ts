// SPDX-License-Identifier: Apache-2.0
/** The Deployments of an older manifest, with their budgets and the service of one. Layer: upgrade (pure). */
import { CONTROLLERS, endpointOf, endpointVariables, imageOf, labelled, NAMESPACE, said, TYPHA, type Template } from './template.ts'

const LINUX = { 'kubernetes.io/os': 'linux' }
const CRITICAL = { priorityClassName: 'system-cluster-critical' }
const ADDON = { key: 'CriticalAddonsOnly', operator: 'Exists' }

export function controllers(template: Template): readonly object[] {
  const enabled = template.has('loadBalancerController') ? 'node,loadbalancer' : 'node'
  const labels = labelled(CONTROLLERS)
  const status = (flag: string): object => ({ exec: { command: ['/usr/bin/check-status', flag] }, periodSeconds: 10 })
  const pod = {
    nodeSelector: LINUX,
    tolerations: [ADDON, ...['master', 'control-plane'].map((role) => ({ key: `node-role.kubernetes.io/${role}`, effect: 'NoSchedule' }))],
    serviceAccountName: CONTROLLERS,
    ...CRITICAL,
    ...(template.has('seccompProfile') ? { securityContext: { seccompProfile: { type: 'RuntimeDefault' } } } : {}),
    containers: [
      {
        name: CONTROLLERS,
        image: imageOf(template, 'kube-controllers'),
        env: [...said({ ENABLED_CONTROLLERS: enabled, DATASTORE_TYPE: 'kubernetes' }), ...endpointVariables(template)],
        livenessProbe: { ...status('-l'), initialDelaySeconds: 10, failureThreshold: 6, timeoutSeconds: 10 },
        readinessProbe: status('-r'),
      },
    ],
  }
  const deployment = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: CONTROLLERS, namespace: NAMESPACE, labels },
    spec: {
      replicas: 1,
      selector: { matchLabels: labels },
      strategy: { type: 'Recreate' },
      template: { metadata: { name: CONTROLLERS, namespace: NAMESPACE, labels }, spec: pod },
    },
  }
  return [deployment, ...(template.has('controllersBudget') ? [budget(template, CONTROLLERS)] : [])]
}

export function typha(template: Template): readonly object[] {
  if (!template.hasTypha) return []
  const labels = labelled(TYPHA)
  const health = (path: string): object => ({ httpGet: { path, port: 9098, host: 'localhost' } })
  const pod = {
    nodeSelector: LINUX,
    hostNetwork: true,
    tolerations: [ADDON],
    serviceAccountName: template.node,
    ...CRITICAL,
    securityContext: { fsGroup: 65_534, ...(template.has('seccompProfile') ? { seccompProfile: { type: 'RuntimeDefault' } } : {}) },
    containers: [
      {
        name: TYPHA,
        image: imageOf(template, 'typha'),
        ports: [{ name: TYPHA, containerPort: 5473, protocol: 'TCP' }],
        ...endpointOf(template),
        env: said({
          TYPHA_LOGSEVERITYSCREEN: 'info',
          TYPHA_LOGFILEPATH: 'none',
          TYPHA_LOGSEVERITYSYS: 'none',
          TYPHA_CONNECTIONREBALANCINGMODE: 'kubernetes',
          TYPHA_DATASTORETYPE: 'kubernetes',
          TYPHA_HEALTHENABLED: 'true',
        }),
        livenessProbe: { ...health('/liveness'), periodSeconds: 30, initialDelaySeconds: 30, timeoutSeconds: 10 },
        readinessProbe: { ...health('/readiness'), periodSeconds: 10, timeoutSeconds: 10 },
        securityContext: { runAsNonRoot: true, allowPrivilegeEscalation: false },
      },
    ],
  }
  const service = { ports: [{ port: 5473, protocol: 'TCP', targetPort: TYPHA, name: TYPHA }], selector: labels }
  return [
    { apiVersion: 'v1', kind: 'Service', metadata: { name: TYPHA, namespace: NAMESPACE, labels }, spec: service },
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: TYPHA, namespace: NAMESPACE, labels },
      spec: { replicas: 1, revisionHistoryLimit: 2, selector: { matchLabels: labels }, template: { metadata: { labels }, spec: pod } },
    },
    budget(template, TYPHA),
  ]
}

function budget({ has }: Template, name: string): object {
  return {
    apiVersion: has('stableBudgets') ? 'policy/v1' : 'policy/v1beta1',
    kind: 'PodDisruptionBudget',
    metadata: { name, namespace: NAMESPACE, labels: labelled(name) },
    spec: { maxUnavailable: 1, selector: { matchLabels: labelled(name) } },
  }
}
