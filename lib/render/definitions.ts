// SPDX-License-Identifier: Apache-2.0
/** CustomResourceDefinitions of our kinds, from the shapes that parsers read by. Layer: lib/render (pure). */
import type { Condition, Schema } from '../base/schema.ts'
import { OPERATOR_RESOURCES } from '../kube/operator-resources.ts'
import { resources, type Resource } from '../kube/resources.ts'

/** Of netplane.io/v3. `felix`: the settings of the agent, which are its own business. */
export function definitions(felix: Schema): readonly object[] {
  return resources(felix).map(definition)
}

/** With those that the operator is told by. */
export function allDefinitions(felix: Schema): readonly object[] {
  return [...definitions(felix), ...OPERATOR_RESOURCES.map(definition)]
}

function definition(resource: Resource): object {
  const { group, version, kind, plural, short, namespaced, columns, warning, status } = resource
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
          // the only way in which a server says something of a kind
          ...(warning !== undefined && { deprecated: true, deprecationWarning: warning }),
          additionalPrinterColumns: [
            ...columns.map(({ name, type, path }) => ({ name, type, jsonPath: path })),
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
