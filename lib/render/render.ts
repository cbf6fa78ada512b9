// SPDX-License-Identifier: Apache-2.0
/** Every object of an installation, in the order in which they are applied. Layer: lib/render (pure). */
import { asApiObject, type ApiObject } from '../api/resource.ts'
import { agentRights } from './agent-rights.ts'
import { renderControllers } from './controllers-pod.ts'
import { ENDPOINT_MAP, NODE, type Endpoint, type RenderInput } from './input.ts'
import { nodeDaemonSet } from './node-pod.ts'
import { securityConstraints } from './security-constraints.ts'

/** Of the nodes: the account with its rights, then what runs by it. */
export function renderNode(input: RenderInput): readonly ApiObject[] {
  const { computed, namespace } = input
  const constraints = securityConstraints(computed, { name: NODE, namespace, capabilities: 'privileged' })
  return [...agentRights(input), ...constraints, nodeDaemonSet(input)].map(asApiObject)
}

/** All of it, but for what goes away again. */
export function renderInstallation(input: RenderInput): readonly ApiObject[] {
  return [...renderNode(input), ...renderControllers(input)]
}

/** The namespace of what is installed: on every node, whatever nodes OpenShift gives to projects by default. */
export function renderNamespace(name: string): ApiObject {
  return asApiObject({
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: {
      name,
      annotations: { 'openshift.io/node-selector': '' },
      labels: {
        'app.kubernetes.io/part-of': 'netplane',
        // the network of the node, its BPF file system, its cgroups
        'pod-security.kubernetes.io/enforce': 'privileged',
      },
    },
  })
}

/** Where the API server is without any service. */
export function renderEndpoint(namespace: string, { host, port }: Endpoint): ApiObject {
  return asApiObject({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: ENDPOINT_MAP, namespace },
    data: { CLUSTER_SERVICE_HOST: host, CLUSTER_SERVICE_PORT: port },
  })
}
