// SPDX-License-Identifier: Apache-2.0
/** Every object of a cluster that has an owner of ours, or has kept one. Layer: upgrade. */
import { ApiError } from '#lib/api/errors.ts'
import type { ApiClient } from '#lib/api/client.ts'
import type { ApiObject } from '#lib/api/resource.ts'
import { servedKinds, type ServedKind } from '#lib/api/served-kinds.ts'
import { KEPT, ourReferences } from './references.ts'

export interface Dependent {
  readonly kind: ServedKind
  /** its metadata alone */
  readonly object: ApiObject
}

export interface Scan {
  readonly dependents: readonly Dependent[]
  /** kinds of which that is not known, a sentence each */
  readonly problems: readonly string[]
}

export type ScanClient = Pick<ApiClient, 'request' | 'list'>

const PAGE = 500
/** Stored objects of old installations stay as they are: what owns one waits on the object that is made of it. */
const STORED = 'crd.netplane.io/'

export async function scanOwners(client: ScanClient): Promise<Scan> {
  const { kinds, silent } = await servedKinds(client)
  const dependents: Dependent[] = []
  const problems = silent.map((apiVersion) => `${apiVersion}: its server does not answer, so owners of its objects are not seen`)
  // events are in two groups
  const seen = new Set<string>()
  for (const kind of kinds.filter(isCollected)) {
    const found = await listed(client, kind)
    if (typeof found === 'string') problems.push(found)
    else
      for (const object of found.filter(hasOwner)) {
        const { uid = '' } = object.metadata
        if (seen.has(uid)) continue
        seen.add(uid)
        dependents.push({ kind, object })
      }
  }
  return { dependents, problems }
}

/** The garbage collector looks after kinds with these verbs alone. */
function isCollected({ apiVersion, verbs }: ServedKind): boolean {
  return ['list', 'watch', 'delete'].every((verb) => verbs.has(verb)) && !apiVersion.startsWith(STORED)
}

/** A sentence where they cannot be read. */
async function listed(client: ScanClient, kind: ServedKind): Promise<readonly ApiObject[] | string> {
  try {
    return await client.list(kind, { metadataOnly: true, limit: PAGE })
  } catch (thrown) {
    if (!(thrown instanceof ApiError)) throw thrown
    // its definition was deleted meanwhile
    if (thrown.status === 404) return []
    return `${kind.kind} (${kind.apiVersion}): ${thrown.message}`
  }
}

function hasOwner(object: ApiObject): boolean {
  return ourReferences(object).length > 0 || object.metadata.annotations?.[KEPT] !== undefined
}

/** "ConfigMap shop/menu" */
export function dependentText({ kind: { kind }, object: { metadata } }: Dependent): string {
  return `${kind} ${metadata.namespace === undefined ? '' : `${metadata.namespace}/`}${metadata.name}`
}
