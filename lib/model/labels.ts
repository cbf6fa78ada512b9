// SPDX-License-Identifier: Apache-2.0
/** Labels: names of the built-in ones, and equal maps held once. Layer: lib/model. */

/** Values by key, as a Map has them. */
export interface Labels extends Iterable<readonly [string, string]> {
  readonly size: number
  get(key: string): string | undefined
  has(key: string): boolean
}

/** What an endpoint says of its namespace and of its service account has these in front. */
export const NAMESPACE_PREFIX = 'pcns.'
export const SERVICE_ACCOUNT_PREFIX = 'pcsa.'

/** On pods: the namespace they are in. On nothing else but namespaced network sets. */
export const NAMESPACE_LABEL = 'netplane.io/namespace'
export const SERVICE_ACCOUNT_LABEL = 'netplane.io/serviceaccount'
/** "k8s" on pods */
export const ORCHESTRATOR_LABEL = 'netplane.io/orchestrator'
/** On namespaces and service accounts: their name. */
export const NAME_LABEL = 'netplane.io/name'
/** On namespaces: their name, as the API server has it. */
export const METADATA_NAME_LABEL = 'kubernetes.io/metadata.name'

export const NO_LABELS: Labels = new Map()

/** An object's own labels, and those that it inherits and has in common with others. An inherited label counts where
 * the object has no own one of its key. Tens of thousands of labels are not copied for each pod. */
export class LayeredLabels implements Labels {
  readonly own: Labels
  readonly inherited: Labels
  #size: number | undefined

  constructor(own: Labels, inherited: Labels) {
    this.own = own
    this.inherited = inherited
  }

  get size(): number {
    this.#size ??= [...this.own].reduce((size, [key]) => (this.inherited.has(key) ? size : size + 1), this.inherited.size)
    return this.#size
  }

  get(key: string): string | undefined {
    return this.own.get(key) ?? this.inherited.get(key)
  }

  has(key: string): boolean {
    return this.own.has(key) || this.inherited.has(key)
  }

  *[Symbol.iterator](): Iterator<readonly [string, string]> {
    yield* this.own
    for (const label of this.inherited) if (!this.own.has(label[0])) yield label
  }
}
