// SPDX-License-Identifier: Apache-2.0
/** Service accounts: their labels, for selectors. Layer: lib/model. */
import type { Labels } from './labels.ts'

export interface ServiceAccount {
  readonly kind: 'ServiceAccount'
  readonly namespace: string
  readonly name: string
  readonly labels: Labels
}
