// SPDX-License-Identifier: Apache-2.0
/** Objects without what tells nothing that counts, told again and again or for each node. Layer: lib/control (pure). */
import { fieldsOf, objectsIn } from '../base/object.ts'
import type { ApiObject } from '../api/resource.ts'

/** Each kubelet writes its Node every five minutes, also when nothing else than these is new. Who wrote what, and the
 * images of a node, are most of its bytes. */
export function quietNode({ metadata, status, ...node }: ApiObject): ApiObject {
  const told = fieldsOf(status)
  return {
    ...node,
    metadata: quiet(metadata),
    status: {
      ...without(told, ['images', 'volumesInUse', 'volumesAttached']),
      conditions: objectsIn(told['conditions']).map((condition) => without(condition, ['lastHeartbeatTime'])),
    },
  }
}

/** How it runs is told by its DaemonSet or Deployment: of each pod that counts where it is, what it was to tell, and
 * what has become of it. */
export function quietPod({ metadata, spec, ...pod }: ApiObject): ApiObject {
  const { nodeName, affinity, initContainers } = fieldsOf(spec)
  return {
    ...pod,
    metadata: quiet(metadata),
    spec: { nodeName, affinity, initContainers: objectsIn(initContainers).map(({ name }) => ({ name })) },
  }
}

/** What the node says of its programs; not its blocks, which come and go with pods. */
export function quietNodeNetwork({ apiVersion, kind, metadata, status }: ApiObject): ApiObject {
  return { apiVersion, kind, metadata: quiet(metadata), status }
}

function quiet(metadata: ApiObject['metadata']): ApiObject['metadata'] {
  return { ...without(metadata, ['managedFields', 'resourceVersion']), name: metadata.name }
}

function without(fields: Readonly<Record<string, unknown>>, names: readonly string[]): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !names.includes(name)))
}
