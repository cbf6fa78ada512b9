// SPDX-License-Identifier: Apache-2.0
/** Secrets that images are pulled with: copies of those that the administrator has beside the operator.
 * Layer: operator (pure). */
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { namesText } from '#lib/control/names-text.ts'
import type { Cause } from '#lib/control/rollout.ts'

/** By "namespace/name". */
export interface FoundSecrets {
  /** the namespace where the administrator puts them */
  readonly from: string
  /** all that are there */
  readonly sources: ReadonlyMap<string, ApiObject>
  /** ours */
  readonly copies: ReadonlyMap<string, ApiObject>
}

export interface PullSecretsInput {
  /** as the Installation has them */
  readonly names: readonly string[]
  readonly found: FoundSecrets
  /** the namespace where pods find them */
  readonly to: string
}

export interface PullSecrets {
  readonly objects: readonly ApiObject[]
  /** why not all of them are copied; undefined: all are */
  readonly wrong: Cause | undefined
}

/** Any other secret is not to be had by naming it in an Installation. */
const TYPES: ReadonlySet<unknown> = new Set(['kubernetes.io/dockerconfigjson', 'kubernetes.io/dockercfg'])

/** What is missing, or no pull secret, leaves the copy as it was: nodes may have images to pull meanwhile. */
export function copyPullSecrets({ names, found, to }: PullSecretsInput): PullSecrets {
  const { from, sources, copies } = found
  const sourceOf = (name: string): ApiObject | undefined => sources.get(`${from}/${name}`)
  const isUsable = (name: string): boolean => TYPES.has(sourceOf(name)?.['type'])
  const named = [...new Set(names)]
  const objects = named.flatMap((name) => {
    const source = isUsable(name) ? sourceOf(name) : copies.get(`${to}/${name}`)
    return source === undefined ? [] : [copyOf(source, to)]
  })
  const wrong = named.filter((name) => !isUsable(name))
  return { objects, wrong: wrong.length === 0 ? undefined : causeOf(wrong, { from, isThere: (name) => sourceOf(name) !== undefined }) }
}

function copyOf({ type, data, metadata: { name } }: ApiObject, namespace: string): ApiObject {
  return asApiObject({ apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace }, type, data })
}

function causeOf(
  names: readonly string[],
  { from, isThere }: { readonly from: string; readonly isThere: (name: string) => boolean },
): Cause {
  const missing = names.filter((name) => !isThere(name))
  const others = names.filter(isThere)
  const said = [
    ...(missing.length === 0 ? [] : [`namespace ${from} has no secret ${namesText(missing)}`]),
    ...(others.length === 0 ? [] : [`not of type kubernetes.io/dockerconfigjson: secret ${namesText(others)}`]),
  ]
  return { reason: 'PullSecretMissing', message: `spec.imagePullSecrets: ${said.join('; ')}` }
}
