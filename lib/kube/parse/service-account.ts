// SPDX-License-Identifier: Apache-2.0
/** Raw ServiceAccount → model. Layer: lib/kube. */
import type { ServiceAccount } from '../../model/service-account.ts'
import type { ParseInput } from './fields.ts'
import { labelsOf } from './labels.ts'

export function parseServiceAccount(input: ParseInput): ServiceAccount {
  return { kind: 'ServiceAccount', namespace: input.namespace, name: input.name, labels: labelsOf(input) }
}
