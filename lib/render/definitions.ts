// SPDX-License-Identifier: Apache-2.0
/** CustomResourceDefinitions of our kinds, from the shapes that parsers read by, with roles for their users.
 * Layer: lib/render (pure). */
import { asApiObject, type ApiObject } from '../api/resource.ts'
import type { Condition, Schema } from '../base/schema.ts'
import { compareVersions, parseVersion } from '../base/text/version.ts'
import { OPERATOR_RESOURCES } from '../kube/operator-resources.ts'
import { GROUP, NAMESPACED_PLURALS, resources, type Resource } from '../kube/resources.ts'

/** Of netplane.io/v3. `felix`: the settings of the agent, which are its own business. */
export function definitions(felix: Schema): readonly object[] {
  return resources(felix).map(definition)
}

/** Of those that the operator is told by. */
export function operatorDefinitions(): readonly object[] {
  return OPERATOR_RESOURCES.map(definition)
}

export function allDefinitions(felix: Schema): readonly object[] {
  return [...definitions(felix), ...operatorDefinitions()]
}

function definition(resource: Resource): object {
  const { group, version, kind, plural, short, namespaced, columns, status } = resource
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      names: { kind, listKind: `${kind}List`, plural, singular: kind.toLowerCase(), ...(short.length > 0 && { shortNames: short }) },
      scope: namespaced ? 'Namespaced' : 'Cluster',
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          additionalPrinterColumns: [
            ...columns.map(({ name, type, path, wide }) => ({ name, type, jsonPath: path, ...(wide === true && { priority: 1 }) })),
            { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
          ],
          ...(status !== undefined && { subresources: { status: {} } }),
          schema: { openAPIV3Schema: rootSchema(resource) },
        },
      ],
    },
  }
}

function rootSchema({ doc, spec, status, conditions, fixed }: Resource): Schema {
  const isNeeded = spec.required !== undefined
  return {
    type: 'object',
    description: doc,
    properties: {
      apiVersion: { type: 'string' },
      kind: { type: 'string' },
      metadata: { type: 'object' },
      spec: withFixed(spec, fixed),
      ...(status !== undefined && { status }),
    },
    ...(isNeeded && { required: ['spec'] }),
    ...(conditions.length > 0 && { 'x-kubernetes-validations': conditions }),
  }
}

/** A field that may also not appear, nor go, later. */
function withFixed(spec: Schema, fixed: readonly string[]): Schema {
  if (fixed.length === 0) return spec
  const stays = fixed.map((key): Condition => ({
    rule: `has(self.${key}) == has(oldSelf.${key}) && (!has(self.${key}) || self.${key} == oldSelf.${key})`,
    message: 'cannot be changed',
    fieldPath: `.${key}`,
  }))
  return { ...spec, 'x-kubernetes-validations': [...(spec['x-kubernetes-validations'] ?? []), ...stays] }
}

/** Which version has made a definition: "v3.31.5". An earlier one leaves it as it is: else the server would drop fields
 * that it does not know, with the next write of each object. */
const MADE_BY = 'netplane.io/definition-version'

/** `version`: "3.31.5" */
export function madeBy(definition: object, version: string): ApiObject {
  const object = asApiObject(definition)
  const { metadata } = object
  return { ...object, metadata: { ...metadata, annotations: { ...metadata.annotations, [MADE_BY]: `v${version}` } } }
}

/** Of a definition that is there; one that says nothing is not. */
export function isOfNewer({ metadata }: ApiObject, version: string): boolean {
  const [there, here] = [parseVersion(metadata.annotations?.[MADE_BY] ?? ''), parseVersion(version)]
  return there !== undefined && here !== undefined && compareVersions(there, here) > 0
}

const READ = ['get', 'list', 'watch']
const WRITE = ['create', 'update', 'patch', 'delete', 'deletecollection']

/** What Kubernetes adds, by their labels, to its own roles of namespaces: our kinds that are in namespaces. */
export function userRoles(): readonly object[] {
  return [role('view', READ, ['view', 'edit', 'admin']), role('edit', WRITE, ['edit', 'admin'])]
}

/** `of`: Kubernetes' roles. */
function role(name: string, verbs: readonly string[], of: readonly string[]): object {
  const labels = {
    'app.kubernetes.io/name': `netplane-${name}`,
    'app.kubernetes.io/part-of': 'netplane',
    ...Object.fromEntries(of.map((one) => [`rbac.authorization.k8s.io/aggregate-to-${one}`, 'true'])),
  }
  return {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name: `netplane-${name}`, labels },
    rules: [{ apiGroups: [GROUP], resources: NAMESPACED_PLURALS, verbs }],
  }
}
