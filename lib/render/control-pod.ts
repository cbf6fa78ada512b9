// SPDX-License-Identifier: Apache-2.0
/** What Deployments of programs have in common that act for the whole cluster. Layer: lib/render (pure). */
import { STARTUP_TAINT } from '../kube/objects/startup-taint.ts'
import { endpointVariables, labelsOf, type Endpoint } from './input.ts'

/** Of nodes that wait for a network or an agent, and of those that clusters keep for their own. Not all there are: a
 * node that is drained is to be left, and one that is gone as well. */
export const CONTROL_TOLERATIONS = [
  ...['node.kubernetes.io/not-ready', 'node.kubernetes.io/network-unavailable', 'node.cloudprovider.kubernetes.io/uninitialized'],
  STARTUP_TAINT,
  ...['node-role.kubernetes.io/control-plane', 'CriticalAddonsOnly'],
].map((key) => ({ key, operator: 'Exists' }))

/** As Kubernetes has each; what is empty is left out. */
export interface ControlPods {
  readonly imagePullSecrets: object | string
  readonly podAnnotations: object | string
  readonly dnsConfig: object | string
  readonly resources: object | string
  readonly nodeSelector: object | string
  readonly tolerations: object | string
}

export interface ControlPod {
  /** its command, and what its container is called */
  readonly program: string
  readonly account: string
  readonly image: string
  readonly pods: Omit<ControlPods, 'podAnnotations'>
  readonly args: readonly string[]
  /** undefined: by the config map of its namespace, where there is one */
  readonly endpoint: Endpoint | undefined
  /** of its container */
  readonly more: object
}

/** It works without the network that is made by it. */
export function controlPodSpec({ program, account, image, pods, args, endpoint, more }: ControlPod): object {
  return {
    serviceAccountName: account,
    ...filled({ imagePullSecrets: pods.imagePullSecrets }),
    priorityClassName: 'system-cluster-critical',
    hostNetwork: true,
    dnsPolicy: 'Default',
    ...filled({ dnsConfig: pods.dnsConfig }),
    enableServiceLinks: false,
    terminationGracePeriodSeconds: 10,
    ...filled({ nodeSelector: pods.nodeSelector, tolerations: pods.tolerations }),
    containers: [
      {
        name: program,
        image,
        imagePullPolicy: 'IfNotPresent',
        command: [program],
        args,
        env: [own('NAMESPACE', 'metadata.namespace'), own('NODE_NAME', 'spec.nodeName'), ...endpointVariables(endpoint)],
        securityContext: {
          runAsNonRoot: true,
          runAsUser: 65_532,
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
          seccompProfile: { type: 'RuntimeDefault' },
        },
        ...more,
        ...filled({ resources: pods.resources }),
      },
    ],
  }
}

function own(name: string, fieldPath: string): object {
  return { name, valueFrom: { fieldRef: { fieldPath } } }
}

export interface ControlDeployment extends Omit<ControlPod, 'account' | 'more' | 'pods'> {
  readonly namespace: string
  readonly pods: ControlPods
  /** on the node's loopback address */
  readonly healthPort: number
}

/** Of the program's name. */
export function controlDeployment({ namespace, healthPort, ...pod }: ControlDeployment): object {
  const { program: name, pods } = pod
  const labels = labelsOf(name)
  const health = (path: string): object => ({ host: '127.0.0.1', path, port: healthPort })
  const more = {
    // why it has ended, in the status of its pod
    terminationMessagePolicy: 'FallbackToLogsOnError',
    livenessProbe: { httpGet: health('/liveness'), initialDelaySeconds: 10, periodSeconds: 10, failureThreshold: 6 },
    readinessProbe: { httpGet: health('/readiness'), periodSeconds: 5 },
  }
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace, labels },
    spec: {
      replicas: 1,
      // two at a time would fight for ports of one node; the Lease would let one act alone
      strategy: { type: 'Recreate' },
      selector: { matchLabels: { 'app.kubernetes.io/name': name } },
      template: {
        metadata: { labels, ...filled({ annotations: pods.podAnnotations }) },
        spec: controlPodSpec({ ...pod, account: name, more }),
      },
    },
  }
}

/** Without what is empty. */
function filled(fields: Readonly<Record<string, object | string>>): object {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => Object.keys(value).length > 0))
}
