// SPDX-License-Identifier: Apache-2.0
/** Kinds, names and objects as paths of the API. Layer: lib/api (pure). */
import { InternalError } from '../base/errors.ts'
import { isObject } from '../base/object.ts'

/** An object as the API has it: only what identifies it is known. */
export interface ApiObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: {
    readonly name: string
    readonly namespace?: string
    readonly uid?: string
    readonly resourceVersion?: string
    readonly generation?: number
    readonly creationTimestamp?: string
    readonly deletionTimestamp?: string
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
    readonly [field: string]: unknown
  }
  readonly [field: string]: unknown
}

/** All objects of a kind: in one namespace, or in all of them. */
export interface Collection {
  readonly apiVersion: string
  readonly kind: string
  /** its name in paths, where another program chose it; undefined: by the rule of {@link pluralOf} */
  readonly plural?: string
  readonly namespace?: string | undefined
}

/** One object. */
export interface Named extends Collection {
  readonly name: string
}

/** Kinds whose names are plurals. */
const PLURALS: ReadonlySet<string> = new Set(['endpoints', 'securitycontextconstraints'])

/** "Pod" → "pods", "NetworkPolicy" → "networkpolicies": the API's own rule for the names of its collections. */
export function pluralOf(kind: string): string {
  const name = kind.toLowerCase()
  if (PLURALS.has(name)) return name
  if (/[^aeiou]y$/.test(name)) return `${name.slice(0, -1)}ies`
  return /(s|x|z|ch|sh)$/.test(name) ? `${name}es` : `${name}s`
}

/** "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices" */
export function collectionPath({ apiVersion, kind, plural = pluralOf(kind), namespace = '' }: Collection): string {
  const group = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`
  return `${group}${namespace === '' ? '' : `/namespaces/${encodeURIComponent(namespace)}`}/${plural}`
}

export function objectPath(named: Named, subresource = ''): string {
  return `${collectionPath(named)}/${encodeURIComponent(named.name)}${subresource === '' ? '' : `/${subresource}`}`
}

export function namedOf({ apiVersion, kind, metadata: { namespace, name } }: ApiObject): Named {
  return { apiVersion, kind, namespace, name }
}

/** Whether the server's answer has what every object has. */
export function isApiObject(value: unknown): value is ApiObject {
  if (!isObject(value) || typeof value['apiVersion'] !== 'string' || typeof value['kind'] !== 'string') return false
  const { metadata } = value
  return isObject(metadata) && typeof metadata['name'] === 'string'
}

/** For what we have made or read ourselves. Throws InternalError when it is no object of the API. */
export function asApiObject(value: unknown): ApiObject {
  if (isApiObject(value)) return value
  throw new InternalError('no apiVersion, kind or metadata.name')
}
