// SPDX-License-Identifier: Apache-2.0
/** Raw JSON of any kind we use → model value or reasons. Layer: lib/kube.
 *
 * What the API server would refuse rejects the whole object, so that its last good version stays in force; what is
 * valid but not ours to serve is left out, with a reason, and the rest is used. Nothing raw is kept. */
import { atOnce, type Sliced } from '../../base/async/slices.ts'
import { isObject } from '../../base/object.ts'
import { MOST_TOLD, type Parsed, type Rejected } from '../../base/result.ts'
import { nameKey, refText } from '../../model/ref.ts'
import type { Ref } from '../../model/ref.ts'
import type { KubeObject } from '../../model/snapshot.ts'
import { FieldError, record, text } from './fields.ts'
import type { Raw } from './fields.ts'
import { KINDS } from '../kinds.ts'
import type { KindEntry } from '../kinds.ts'
import { NO_INTERN_POOL } from './intern.ts'
import type { InternPool } from './intern.ts'

/** Kinds that would change what traffic may do if we obeyed them: refused aloud, while other kinds are not our
 * business. */
const NOT_YET = /^(networking\.k8s\.io\/v1 NetworkPolicy|policy\.networking\.k8s\.io\/\S+ \S+|netplane\.io\/\S+ \S+)$/

export type Identified =
  | { readonly kind: 'ours'; readonly ref: Ref; readonly entry: KindEntry }
  | { readonly kind: 'foreign' }
  | { readonly kind: 'rejected'; readonly ref: Ref | undefined; readonly rejected: Rejected }

/** Reads kind, namespace ("default" when a namespaced object has none) and name. */
export function identify(value: unknown): Identified {
  try {
    return identifyRaw(value)
  } catch (thrown) {
    if (!(thrown instanceof FieldError)) throw thrown
    return { kind: 'rejected', ref: undefined, rejected: { ref: '', path: thrown.path, reason: thrown.reason } }
  }
}

function identifyRaw(value: unknown): Identified {
  if (!isObject(value)) throw new FieldError('', 'must be an object')
  const kind = text(value, 'kind')
  const apiVersion = text(value, 'apiVersion')
  if (kind === undefined) throw new FieldError('kind', 'is missing')
  if (apiVersion === undefined) throw new FieldError('apiVersion', 'is missing')
  const entry = KINDS.find(
    (candidate) => (candidate.manifestKind ?? candidate.kind) === kind && sameGroup(candidate.apiVersion, apiVersion),
  )
  const known = entry !== undefined
  if (!known && !NOT_YET.test(`${apiVersion} ${kind}`)) return { kind: 'foreign' }
  const { namespace, name } = namesIn(value)
  if (!known) {
    const ref = `${kind}/${nameKey({ namespace: namespace ?? '', name })}`
    return { kind: 'rejected', ref: undefined, rejected: { ref, path: 'kind', reason: 'is not implemented' } }
  }
  const ref: Ref = { kind: entry.kind, namespace: entry.namespaced ? (namespace ?? 'default') : '', name }
  if (apiVersion === entry.apiVersion) return { kind: 'ours', ref, entry }
  return { kind: 'rejected', ref, rejected: { ref: refText(ref), path: 'apiVersion', reason: `must be ${entry.apiVersion}` } }
}

/** Parses what {@link identify} has found to be ours. Never throws on any JSON. */
export function parseObject(value: unknown, ref: Ref, pool?: InternPool): Parsed<KubeObject> {
  return atOnce(parseInSlices(value, ref, pool))
}

/** As {@link parseObject}, between whose steps others may have their turn. */
export function* parseInSlices(value: unknown, ref: Ref, pool: InternPool = NO_INTERN_POOL): Sliced<Parsed<KubeObject>> {
  const told: Rejected[] = []
  let more = 0
  const owner = refText(ref)
  const tell = ({ path, reason }: Pick<FieldError, 'path' | 'reason'>): void => {
    told.push({ ref: owner, path, reason })
  }
  const refuse = (error: FieldError): void => {
    if (told.length < MOST_TOLD) tell(error)
    else more++
  }
  const all = (): readonly Rejected[] => {
    if (more > 0) tell({ path: '', reason: `${more} more parts of it are left out` })
    return told
  }
  const entry = KINDS.find((candidate) => candidate.kind === ref.kind)
  try {
    if (entry === undefined || !isObject(value)) throw new FieldError('', 'must be an object')
    const input = { raw: value, namespace: pool.text(ref.namespace), name: ref.name, refuse, intern: pool.text, shared: pool }
    const read = entry.parse(input)
    const parsed = Symbol.iterator in read ? yield* read : read
    const isStandIn = 'closed' in parsed || (isSet(parsed) && told.length > 0)
    return isStandIn ? { kind: 'rejected', rejected: all(), instead: parsed } : { kind: 'ok', value: parsed, rejected: all() }
  } catch (thrown) {
    if (!(thrown instanceof FieldError)) throw thrown
    const rejected = all()
    tell(thrown)
    return { kind: 'rejected', rejected }
  }
}

/** A deny may name one: what it loses would be open, so its last good version goes before the rest of it. */
function isSet({ kind }: KubeObject): boolean {
  return kind === 'NetworkSet' || kind === 'GlobalNetworkSet'
}

function sameGroup(a: string, b: string): boolean {
  const group = (apiVersion: string): string => apiVersion.slice(0, Math.max(0, apiVersion.indexOf('/')))
  return group(a) === group(b)
}

/** Throws FieldError for what the API server would not take. */
export function namesIn(value: Raw): { readonly namespace: string | undefined; readonly name: string } {
  const metadata = record(value, 'metadata')
  const name = checkedName(metadata, 'name')
  if (name === undefined) throw new FieldError('metadata.name', 'is missing')
  return { namespace: checkedName(metadata, 'namespace'), name }
}

function checkedName(metadata: Raw, key: string): string | undefined {
  const name = text(metadata, key)
  if (name === undefined || name === '') return undefined
  if (name.length > 253 || !/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(name)) {
    throw new FieldError(`metadata.${key}`, 'must be lower-case letters, digits, "-" and "."')
  }
  return name
}
