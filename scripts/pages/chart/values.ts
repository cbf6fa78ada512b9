// SPDX-License-Identifier: Apache-2.0
/** The values of the chart: what each may be, and its default. Layer: scripts. */
import { dump } from 'js-yaml'
import { ADDRESS_SCHEMA } from '#lib/base/address-schema.ts'
import type { Schema } from '#lib/base/schema.ts'
import { installationSpec } from '#lib/kube/schema/installation.ts'
import { ENDPOINT_MAP } from '#lib/render/input.ts'
import { OPERATOR_PODS } from '#lib/render/operator-pod.ts'
import { usualSpec } from '../manifests.ts'

interface Value {
  readonly doc: string
  readonly schema: Schema
  readonly usual: unknown
}

const text: Schema = { type: 'string' }
const texts: Schema = { type: 'object', additionalProperties: text }
/** Part of an object of Kubernetes, which its API server checks. */
const open: Schema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }

/** A number, or a text of one; empty: none. The bounds are those of the number, the pattern is that of the text. */
const portOrNone: Schema = {
  'x-kubernetes-int-or-string': true,
  minimum: 1,
  maximum: 65_535,
  pattern: '^([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])?$',
}

function object(properties: Readonly<Record<string, Schema>>, required: readonly string[] = []): Schema {
  return { type: 'object', properties, ...(required.length === 0 ? {} : { required }) }
}

const VALUES = {
  installation: {
    doc: 'What is installed: the spec of the Installation. With enabled: false there is none until you make one.',
    schema: object({ enabled: { type: 'boolean' }, ...installationSpec.schema.properties }),
    usual: { enabled: true, ...usualSpec('Netplane') },
  },
  clusterServicesEndpoint: {
    doc: `Where the API server is without any service: the config map ${ENDPOINT_MAP}. Without a host the chart makes none.`,
    schema: object({ host: text, port: portOrNone }),
    usual: { host: '', port: '' },
  },
  netplaneOperator: {
    doc: "The operator's own image; that of the nodes is in installation. Without a version it is that of the chart.",
    schema: object({ registry: text, image: { ...text, minLength: 1 }, version: text }),
    usual: { registry: '', image: 'netplane', version: '' },
  },
  imagePullSecrets: {
    doc: "Secrets of the operator's namespace that its image is pulled with: a list of {name}.",
    schema: { type: 'array', items: object({ name: { ...text, minLength: 1 } }, ['name']) },
    usual: OPERATOR_PODS.imagePullSecrets,
  },
  dnsConfig: {
    doc: 'How the operator finds the API server by name; on kOps and EKS nameservers: [169.254.169.253].',
    schema: object({
      nameservers: { type: 'array', items: ADDRESS_SCHEMA },
      searches: { type: 'array', items: text },
      options: { type: 'array', items: open },
    }),
    usual: OPERATOR_PODS.dnsConfig,
  },
  podAnnotations: { doc: "Annotations of the operator's pods.", schema: texts, usual: OPERATOR_PODS.podAnnotations },
  resources: { doc: 'What the operator asks for and may have.', schema: open, usual: OPERATOR_PODS.resources },
  nodeSelector: { doc: "Labels that the operator's node must have.", schema: texts, usual: OPERATOR_PODS.nodeSelector },
  tolerations: {
    doc: 'Taints that the operator does not mind; it comes before the network that makes nodes ready.',
    schema: { type: 'array', items: open },
    usual: OPERATOR_PODS.tolerations,
  },
  uninstallTimeout: {
    doc: "Seconds in which `helm uninstall` waits for the Installation to be gone; let helm's own --timeout be longer.",
    schema: { type: 'integer', minimum: 1, maximum: 999_999 },
    usual: 240,
  },
} as const satisfies Readonly<Record<string, Value>>

export function valuesPage(): string {
  const parts = Object.entries(VALUES).map(([name, { doc, usual }]) => `# ${doc}\n${dump({ [name]: usual }, { lineWidth: 140 })}`)
  return `# Made by scripts/generate-docs.ts from scripts/pages/chart: change it there.\n\n${parts.join('\n')}`
}

export function valuesSchemaPage(): string {
  const described = Object.entries(VALUES).map(([name, { doc, schema }]): [string, Schema] => [name, { description: doc, ...schema }])
  const schema = {
    $schema: 'http://json-schema.org/draft-07/schema#',
    $comment: 'Made by scripts/generate-docs.ts from scripts/pages/chart: change it there.',
    // helm's own, of charts in charts, is the last
    ...jsonSchema(object({ ...Object.fromEntries(described), global: open })),
  }
  return `${JSON.stringify(schema, null, 2)}\n`
}

/** Without what only an API server knows. As there, a field that has no name here is refused. */
function jsonSchema(of: Schema): object {
  const { properties, additionalProperties, items } = of
  const entries = Object.entries(of).filter(([key]) => !key.startsWith('x-kubernetes-'))
  return {
    ...Object.fromEntries(entries),
    ...(of['x-kubernetes-int-or-string'] === true && { type: ['integer', 'string'] }),
    ...(items !== undefined && { items: jsonSchema(items) }),
    ...(additionalProperties !== undefined && { additionalProperties: jsonSchema(additionalProperties) }),
    ...(properties !== undefined && {
      properties: Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, jsonSchema(schema)])),
      additionalProperties: false,
    }),
  }
}
