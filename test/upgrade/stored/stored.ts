// SPDX-License-Identifier: Apache-2.0
/** Objects as each version of the product has stored them: short to write, complete as the API server gives them.
 * Layer: test. */
import { sha1 } from '#lib/base/hash.ts'
import type { Manifest } from '../../support/build.ts'

export const VERSIONS = ['3.15', '3.20', '3.27', '3.29.2', '3.30', '3.31'] as const
export type Version = (typeof VERSIONS)[number]

export interface StoredSpec {
  readonly spec?: Manifest
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  /** what else metadata has */
  readonly metadata?: Manifest
}

const CREATED = '2024-05-02T08:00:00Z'
/** Kinds that say their name in the annotation, by versions that do. */
const NAMED = /NetworkPolicy$/

/** "web", or "shop/web". */
export function namesOf(name: string): { readonly name: string; readonly namespace?: string } {
  const [first = '', second] = name.split('/')
  return second === undefined ? { name: first } : { namespace: first, name: second }
}

/** One UID for one object, whatever the order. */
export function uidOf(kind: string, name: string): string {
  const hex = sha1(`${kind}/${name}`)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

/** Written straight to the store: without the annotation. */
export function raw(kind: string, name: string, { spec = {}, labels, annotations, metadata = {} }: StoredSpec = {}): Manifest {
  const names = { ...namesOf(name), uid: uidOf(kind, name), resourceVersion: '7', creationTimestamp: CREATED }
  return {
    apiVersion: 'crd.netplane.io/v1',
    kind,
    metadata: { ...names, ...(labels && { labels }), ...(annotations && { annotations }), ...metadata },
    spec,
  }
}

/** Written by clients of `version`, of which the object is called `name`; policies in the default tier have its name in
 * front. */
export function storedBy(version: Version): (kind: string, name: string, of?: StoredSpec) => Manifest {
  return (kind, name, of = {}) => storedWith(version, { kind, name, of })
}

function storedWith(
  version: Version,
  { kind, name, of }: { readonly kind: string; readonly name: string; readonly of: StoredSpec },
): Manifest {
  const { labels = {}, annotations = {}, spec = {}, metadata = {} } = of
  const hidesLabels = !['3.15', '3.20', '3.27'].includes(version)
  const hidesName = ['3.30', '3.31'].includes(version) && NAMED.test(kind)
  const isOurs = ([key]: readonly [string, string]): boolean => key.includes('netplane.io/')
  const outer = (all: Readonly<Record<string, string>>) => (hidesLabels ? Object.fromEntries(Object.entries(all).filter(isOurs)) : all)
  const inner = {
    creationTimestamp: CREATED,
    ...(hidesLabels && { labels, annotations }),
    ...(hidesName && { name: namesOf(name).name }),
    ...metadata,
  }
  return raw(kind, storedName(kind, name, spec), {
    spec,
    labels: outer(labels),
    annotations: { ...outer(annotations), 'netplane.io/metadata': JSON.stringify(inner) },
  })
}

function storedName(kind: string, name: string, spec: Manifest): string {
  const { namespace, name: own } = namesOf(name)
  const isTiered = NAMED.test(kind) && kind !== 'StagedKubernetesNetworkPolicy'
  const isPrefixed = isTiered && (spec['tier'] ?? 'default') === 'default'
  return `${namespace === undefined ? '' : `${namespace}/`}${isPrefixed ? 'default.' : ''}${own}`
}
