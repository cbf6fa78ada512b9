// SPDX-License-Identifier: Apache-2.0
/** Label selectors as a tree: what policies and rules say of endpoints. Layer: lib/model. */

/** `same` holds where the label is there and equal; the negated ones hold also where it is absent. */
export type Selector =
  | { readonly op: 'all' }
  | { readonly op: 'none' }
  /** true for endpoints and sets that belong to no namespace */
  | { readonly op: 'global' }
  | { readonly op: 'has'; readonly label: string }
  | { readonly op: 'equals' | 'contains' | 'starts' | 'ends'; readonly label: string; readonly value: string }
  | { readonly op: 'in'; readonly label: string; readonly values: ReadonlySet<string> }
  | { readonly op: 'not'; readonly of: Selector }
  | { readonly op: 'and' | 'or'; readonly of: readonly Selector[] }
