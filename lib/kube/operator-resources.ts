// SPDX-License-Identifier: Apache-2.0
/** Every kind of operator.netplane.io/v1 as an API server knows it. Layer: lib/kube. */
import type { Condition, Schema } from '../base/schema.ts'
import { column, IS_DEFAULT, resource, type Resource } from './resources.ts'
import { flowAggregatorSpec, flowUiSpec, installationSpec } from './schema/installation.ts'

export const OPERATOR_GROUP = 'operator.netplane.io'
export const OPERATOR_VERSION = 'v1'

/** What the operator is told, and what it says; each component has a status of its own by this name. */
export const COMPONENTS = ['preflight', 'network', 'services', 'proxy', 'controllers', 'flow-aggregator', 'flow-ui'] as const
export type Component = (typeof COMPONENTS)[number]

export const CONDITION_TYPES = ['Available', 'Progressing', 'Degraded'] as const

/** As Kubernetes has them: of each type one. */
const conditions: Schema = {
  type: 'array',
  description: 'What holds at present.',
  maxItems: 16,
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': ['type'],
  items: {
    type: 'object',
    required: ['type', 'status', 'reason', 'message', 'lastTransitionTime'],
    properties: {
      type: { type: 'string', maxLength: 64 },
      status: { type: 'string', enum: ['True', 'False', 'Unknown'] },
      reason: { type: 'string', minLength: 1, maxLength: 64 },
      message: { type: 'string', maxLength: 32_768 },
      lastTransitionTime: { type: 'string', format: 'date-time' },
      observedGeneration: { type: 'integer', format: 'int64', minimum: 0 },
    },
  },
}

const observedGeneration: Schema = { type: 'integer', format: 'int64', description: 'The generation that this is about.' }

const VARIANT_STAYS: Condition = {
  rule: "(has(self.variant) ? self.variant : 'Netplane') == (has(oldSelf.variant) ? oldSelf.variant : 'Netplane')",
  message: 'cannot be changed',
  fieldPath: '.variant',
}

function status(properties: Readonly<Record<string, Schema>>): Schema {
  return { type: 'object', properties: { ...properties, conditions } }
}

function operatorResource(described: Parameters<typeof resource>[0]): Resource {
  return resource({ ...described, group: OPERATOR_GROUP, version: OPERATOR_VERSION })
}

const conditionOf = (type: string, part: string): string => `.status.conditions[?(@.type=="${type}")].${part}`

export const OPERATOR_RESOURCES: readonly Resource[] = [
  operatorResource({
    kind: 'Installation',
    plural: 'installations',
    doc: 'What is installed, and how.',
    spec: { ...installationSpec.schema, 'x-kubernetes-validations': [VARIANT_STAYS] },
    status: status({
      observedGeneration,
      variant: { type: 'string', description: 'The product that runs.' },
      version: { type: 'string', description: 'The version that runs on all nodes.' },
      computed: { ...installationSpec.schema, description: 'The spec with every default that was found or chosen.' },
    }),
    columns: [
      column('Dataplane', 'string', '.status.computed.netplaneNetwork.linuxDataplane'),
      column('Provider', 'string', '.status.computed.provider'),
      column('Version', 'string', '.status.version'),
    ],
    conditions: [IS_DEFAULT],
  }),
  operatorResource({
    kind: 'NetplaneStatus',
    plural: 'netplanestatuses',
    doc: "How a component is. The operator's own: not to be written by hand.",
    spec: { type: 'object' },
    status: status({ observedGeneration }),
    columns: [
      ...CONDITION_TYPES.map((type) => column(type, 'string', conditionOf(type, 'status'))),
      column('Since', 'date', conditionOf('Available', 'lastTransitionTime')),
      column('Message', 'string', conditionOf('Available', 'message')),
    ],
  }),
  operatorResource({
    kind: 'FlowAggregator',
    plural: 'flowaggregators',
    doc: 'Remembers flows of all nodes.',
    spec: flowAggregatorSpec.schema,
    status: status({ observedGeneration }),
    conditions: [IS_DEFAULT],
  }),
  operatorResource({
    kind: 'FlowUI',
    plural: 'flowuis',
    doc: 'The page of flows.',
    spec: flowUiSpec.schema,
    status: status({ observedGeneration }),
    conditions: [IS_DEFAULT],
  }),
]
