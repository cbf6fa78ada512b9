// SPDX-License-Identifier: Apache-2.0
/** Every kind that an API server has, also those of other products. Layer: lib/api. */
import { fieldsOf, isObject, objectsIn, textOf } from '../base/object.ts'
import type { ApiClient, CallOptions } from './client.ts'
import { UnreachableError } from './errors.ts'
import type { Collection } from './resource.ts'

/** In the version that the server prefers. */
export interface ServedKind extends Collection {
  readonly plural: string
  readonly isNamespaced: boolean
  /** "list", "patch" … */
  readonly verbs: ReadonlySet<string>
}

export interface ServedKinds {
  readonly kinds: readonly ServedKind[]
  /** "metrics.k8s.io/v1beta1": another server has them, which does not answer at present */
  readonly silent: readonly string[]
}

const ACCEPT = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'

/** Asks a server of Kubernetes 1.30 or later. */
export async function servedKinds(client: Pick<ApiClient, 'request'>, options: CallOptions = {}): Promise<ServedKinds> {
  const answers = ['/api', '/apis'].map((path) => client.request({ ...options, method: 'GET', path, accept: ACCEPT }))
  const groups = (await Promise.all(answers)).flatMap((answer) => {
    if (isObject(answer) && answer['kind'] === 'APIGroupDiscoveryList') return objectsIn(answer['items'])
    throw new UnreachableError('the server does not list its kinds: it is older than Kubernetes 1.30')
  })
  const versions = groups.flatMap((group) => {
    const name = textOf(fieldsOf(group['metadata'])['name'])
    const prefix = name === '' ? '' : `${name}/`
    return objectsIn(group['versions']).map((version) => ({ group: name, apiVersion: `${prefix}${textOf(version['version'])}`, version }))
  })
  const kinds = versions.flatMap(({ group, apiVersion, version }) => kindsOf(version, apiVersion).map((kind) => ({ group, kind })))
  // the preferred version of each comes first
  const preferred = Map.groupBy(kinds, ({ group, kind }) => `${group}/${kind.plural}`)
  return {
    kinds: [...preferred.values()].flatMap(([first]) => (first === undefined ? [] : [first.kind])),
    silent: versions.filter(({ version }) => version['freshness'] === 'Stale').map(({ apiVersion }) => apiVersion),
  }
}

function kindsOf(version: Readonly<Record<string, unknown>>, apiVersion: string): readonly ServedKind[] {
  return objectsIn(version['resources']).map((resource) => {
    const verbs: unknown = resource['verbs']
    return {
      apiVersion,
      kind: textOf(fieldsOf(resource['responseKind'])['kind']),
      plural: textOf(resource['resource']),
      isNamespaced: resource['scope'] === 'Namespaced',
      verbs: new Set(Array.isArray(verbs) ? verbs.map(textOf) : []),
    }
  })
}
