// SPDX-License-Identifier: Apache-2.0
/** Every object of an installation, in the order in which they are applied. Layer: lib/render (pure). */
import { asApiObject, type ApiObject } from '../api/resource.ts'
import { agentRights } from './agent-rights.ts'
import type { RenderInput } from './input.ts'
import { nodeDaemonSet } from './node-pod.ts'

/** Of the nodes: the account with its rights, then what runs by it. */
export function renderNode(input: RenderInput): readonly ApiObject[] {
  return [...agentRights(input), nodeDaemonSet(input)].map(asApiObject)
}

/** The namespace of what is installed. */
export function renderNamespace(name: string): ApiObject {
  return asApiObject({
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: {
      name,
      labels: {
        'app.kubernetes.io/part-of': 'netplane',
        // the network of the node, its BPF file system, its cgroups
        'pod-security.kubernetes.io/enforce': 'privileged',
      },
    },
  })
}
