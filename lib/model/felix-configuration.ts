// SPDX-License-Identifier: Apache-2.0
/** FelixConfiguration as it was written: what its fields mean is known to the agent's schema alone.
 * Layer: lib/model. */

/** Plain JSON. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json }

export interface FelixConfiguration {
  readonly kind: 'FelixConfiguration'
  readonly namespace: ''
  /** "default" for the cluster, "node.<name>" for one node */
  readonly name: string
  readonly spec: Readonly<Record<string, Json>>
  /** as the API server counts its changes; those of manifests have none */
  readonly generation?: number
}
