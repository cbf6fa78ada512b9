// SPDX-License-Identifier: Apache-2.0
/** What the status of our kinds has in common. Layer: lib/kube. */
import type { Schema } from '../../base/schema.ts'

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

export const observedGeneration: Schema = { type: 'integer', format: 'int64', description: 'The generation that this is about.' }

/** With conditions beside the properties. */
export function statusSchema(properties: Readonly<Record<string, Schema>>): Schema {
  return { type: 'object', properties: { ...properties, conditions } }
}

/** Path of a column. */
export function conditionPath(type: string, part: string): string {
  return `.status.conditions[?(@.type=="${type}")].${part}`
}
