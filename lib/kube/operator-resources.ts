// SPDX-License-Identifier: Apache-2.0
/** Every kind of operator.netplane.io/v1 as an API server knows it. Layer: lib/kube. */
import type { Condition } from '../base/schema.ts'
import { column, IS_DEFAULT, resource, type Resource } from './resources.ts'
import { flowAggregatorSpec, flowUiSpec, installationSpec } from './schema/installation.ts'
import { conditionPath, observedGeneration, statusSchema } from './schema/status.ts'

export const OPERATOR_GROUP = 'operator.netplane.io'
export const OPERATOR_VERSION = 'v1'

/** What the operator is told, and what it says; each component has a status of its own by this name. */
export const COMPONENTS = ['preflight', 'network', 'services', 'proxy', 'controllers', 'flow-aggregator', 'flow-ui'] as const
export type Component = (typeof COMPONENTS)[number]

export const CONDITION_TYPES = ['Available', 'Progressing', 'Degraded'] as const

const VARIANT_STAYS: Condition = {
  rule: "(has(self.variant) ? self.variant : 'Netplane') == (has(oldSelf.variant) ? oldSelf.variant : 'Netplane')",
  message: 'cannot be changed',
  fieldPath: '.variant',
}

function operatorResource(described: Parameters<typeof resource>[0]): Resource {
  return resource({ ...described, group: OPERATOR_GROUP, version: OPERATOR_VERSION })
}

export const OPERATOR_RESOURCES: readonly Resource[] = [
  operatorResource({
    kind: 'Installation',
    plural: 'installations',
    doc: 'What is installed, and how.',
    spec: { ...installationSpec.schema, 'x-kubernetes-validations': [VARIANT_STAYS] },
    status: statusSchema({
      observedGeneration,
      variant: { type: 'string', description: 'The product that runs.' },
      version: { type: 'string', description: 'The version that runs on all nodes.' },
      installed: { type: 'boolean', description: 'Agents were made: no preflight comes before them any more.' },
      endpoint: {
        type: 'object',
        description: 'Where agents ask the API server; missing: at the address of its service.',
        properties: { host: { type: 'string' }, port: { type: 'string' } },
      },
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
    status: statusSchema({
      observedGeneration,
      message: { type: 'string', maxLength: 32_768, description: 'Of Degraded where that holds, else of Available.' },
    }),
    columns: [
      ...CONDITION_TYPES.map((type) => column(type, 'string', conditionPath(type, 'status'))),
      column('Since', 'date', conditionPath('Available', 'lastTransitionTime')),
      column('Message', 'string', '.status.message'),
    ],
  }),
  operatorResource({
    kind: 'FlowAggregator',
    plural: 'flowaggregators',
    doc: 'Remembers flows of all nodes.',
    spec: flowAggregatorSpec.schema,
    status: statusSchema({ observedGeneration }),
    conditions: [IS_DEFAULT],
  }),
  operatorResource({
    kind: 'FlowUI',
    plural: 'flowuis',
    doc: 'The page of flows.',
    spec: flowUiSpec.schema,
    status: statusSchema({ observedGeneration }),
    conditions: [IS_DEFAULT],
  }),
]
