// SPDX-License-Identifier: Apache-2.0
/** deploy/crds.yaml: our kinds' schemas for an API server, from the shapes that parsers read by. Layer: scripts. */
import { dump } from 'js-yaml'
import type { Condition, Schema } from '#lib/base/schema.ts'
import { GROUP, resources, VERSION, type Resource } from '#lib/kube/resources.ts'
import { felixSchema } from '#agent/config/open-api.ts'

export function crdsPage(): string {
  const documents = definitions().map((definition) => dump(definition, { lineWidth: 140, noRefs: true }))
  return `# Made by scripts/generate-docs.ts from lib/kube and agent/config: change it there.\n---\n${documents.join('---\n')}`
}

/** CustomResourceDefinitions of all kinds. */
export function definitions(): readonly unknown[] {
  return resources(felixSchema()).map(definition)
}

function definition(resource: Resource): unknown {
  const { kind, plural, short, namespaced, columns, warning } = resource
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${GROUP}` },
    spec: {
      group: GROUP,
      names: { kind, listKind: `${kind}List`, plural, singular: kind.toLowerCase(), ...(short.length > 0 && { shortNames: short }) },
      scope: namespaced ? 'Namespaced' : 'Cluster',
      versions: [
        {
          name: VERSION,
          served: true,
          storage: true,
          // the only way in which a server says something of a kind
          ...(warning !== undefined && { deprecated: true, deprecationWarning: warning }),
          additionalPrinterColumns: [
            ...columns.map(({ name, type, path }) => ({ name, type, jsonPath: path })),
            { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
          ],
          schema: { openAPIV3Schema: rootSchema(resource) },
        },
      ],
    },
  }
}

function rootSchema({ doc, spec, conditions, fixed }: Resource): Schema {
  const isNeeded = spec.required !== undefined
  return {
    type: 'object',
    description: doc,
    properties: { apiVersion: { type: 'string' }, kind: { type: 'string' }, metadata: { type: 'object' }, spec: withFixed(spec, fixed) },
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
