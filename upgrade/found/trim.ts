// SPDX-License-Identifier: Apache-2.0
/** Of each object what an upgrade goes by: no secrets, and no parts that grow with the cluster. Layer: upgrade
 * (pure). */
import { fieldsOf, objectsIn } from '#lib/base/object.ts'
import { by, compareText } from '#lib/base/order.ts'
import type { ApiObject } from '#lib/api/resource.ts'
import { GROUP } from '#lib/kube/resources.ts'
import type { UpgradeFacts } from './facts.ts'
import { groupOf, isAggregated } from './objects.ts'

type Fields = Readonly<Record<string, unknown>>

/** With the data of a Secret in it. */
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration'

const TRIMMED: Readonly<Record<string, (object: ApiObject) => ApiObject>> = {
  '/Pod': pod,
  '/Node': node,
  '/Secret': secret,
  'apiextensions.k8s.io/CustomResourceDefinition': definition,
}

/** Each object once, in one order; of one that is there twice the last. */
export function factsOf(facts: UpgradeFacts): UpgradeFacts {
  const seen = isAggregated(facts) ? facts.objects.filter((object) => groupOf(object) !== GROUP) : facts.objects
  const byKey = new Map(seen.map((object) => [keyOf(object), trimmed(object)]))
  return { ...facts, objects: [...byKey].toSorted(by(([key]) => key, compareText)).map(([, object]) => object) }
}

function keyOf({ apiVersion, kind, metadata: { namespace = '', name } }: ApiObject): string {
  return [apiVersion, kind, namespace, name].join(' ')
}

export function trimmed(object: ApiObject): ApiObject {
  return TRIMMED[`${groupOf(object)}/${object.kind}`]?.(object) ?? object
}

function pick(value: unknown, ...names: readonly string[]): Fields {
  const fields = fieldsOf(value)
  return Object.fromEntries(names.flatMap((name) => (fields[name] === undefined ? [] : [[name, fields[name]]])))
}

/** Without those who have written its fields, which are more than the object. */
function metadataOf({ metadata }: ApiObject): ApiObject['metadata'] {
  return { ...metadata, managedFields: undefined }
}

function pod(object: ApiObject): ApiObject {
  const { apiVersion, kind, spec, status } = object
  const containers = (name: string): Fields => {
    const all = objectsIn(fieldsOf(spec)[name])
    return all.length === 0 ? {} : { [name]: all.map((one) => pick(one, 'name', 'image', 'ports', 'restartPolicy')) }
  }
  return {
    ...{ apiVersion, kind, metadata: metadataOf(object) },
    spec: { ...pick(spec, 'nodeName', 'hostNetwork', 'serviceAccountName'), ...containers('containers'), ...containers('initContainers') },
    status: pick(status, 'phase', 'podIP', 'podIPs', 'startTime', 'conditions'),
  }
}

function node(object: ApiObject): ApiObject {
  const { apiVersion, kind, spec = {}, status } = object
  return { apiVersion, kind, metadata: metadataOf(object), spec, status: pick(status, 'addresses', 'conditions', 'nodeInfo') }
}

function secret(object: ApiObject): ApiObject {
  const { apiVersion, kind } = object
  const metadata = metadataOf(object)
  const annotations = Object.entries(metadata.annotations ?? {}).filter(([key]) => key !== LAST_APPLIED)
  return { apiVersion, kind, metadata: { ...metadata, annotations: Object.fromEntries(annotations) } }
}

/** Without the schemas of its versions. */
function definition(object: ApiObject): ApiObject {
  const { apiVersion, kind, spec, status } = object
  const versions = objectsIn(fieldsOf(spec)['versions']).map((version) => pick(version, 'name', 'served', 'storage'))
  return {
    ...{ apiVersion, kind, metadata: metadataOf(object) },
    spec: { ...pick(spec, 'group', 'names', 'scope'), versions },
    status: pick(status, 'storedVersions', 'conditions'),
  }
}
