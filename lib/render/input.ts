// SPDX-License-Identifier: Apache-2.0
/** What objects are rendered from, and what they have in common. Layer: lib/render (pure). */
import type { Computed } from './computed.ts'

/** The DaemonSet, its container, account and roles. */
export const NODE = 'netplane-node'

export interface Endpoint {
  readonly host: string
  readonly port: string
}

export interface RenderInput {
  readonly namespace: string
  readonly image: string
  readonly computed: Computed
  /** undefined: pods read it from the config map of their namespace, where there is one */
  readonly endpoint: Endpoint | undefined
}

export function labelsOf(name: string): Readonly<Record<string, string>> {
  return { 'app.kubernetes.io/name': name, 'app.kubernetes.io/part-of': 'netplane' }
}

export function pullSecrets({ computed: { imagePullSecrets } }: RenderInput): object {
  return imagePullSecrets.length === 0 ? {} : { imagePullSecrets: imagePullSecrets.map((name) => ({ name })) }
}
