// SPDX-License-Identifier: Apache-2.0
/** Namespaces: their labels, for selectors. Layer: lib/model. */
import type { Labels } from './labels.ts'

export interface Namespace {
  readonly kind: 'Namespace'
  readonly namespace: ''
  readonly name: string
  readonly labels: Labels
  /** its annotations that ask for addresses for its pods, where it has any */
  readonly wishes?: Labels
}
