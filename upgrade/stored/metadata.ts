// SPDX-License-Identifier: Apache-2.0
/** Names, labels and owners of a stored object, in each form in which versions have written them.
 * Layer: upgrade (pure). */
import { isObject } from '#lib/base/object.ts'
import { FieldError, each, own, record, text, under } from '#lib/kube/parse/fields.ts'
import type { Fault, Raw, StoredRef } from './outcome.ts'

/** Where versions before this one keep what the API server would take for its own. */
export const METADATA_ANNOTATION = 'netplane.io/metadata'

export interface StoredObject {
  readonly ref: StoredRef
  /** as clients saw it, where the object says so */
  readonly shownName: string | undefined
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  /** what else the object made by clients has */
  readonly kept: Raw
  readonly ownerReferences: readonly Raw[]
  readonly spec: unknown
}

export type ReadStored =
  | { readonly kind: 'read'; readonly stored: StoredObject }
  | { readonly kind: 'refused'; readonly of: StoredRef; readonly faults: readonly Fault[] }

export function readStoredObject(value: unknown): ReadStored {
  const raw = isObject(value) ? value : {}
  const of = refOf(raw)
  try {
    return { kind: 'read', stored: storedWith(raw, of) }
  } catch (thrown) {
    if (!(thrown instanceof FieldError)) throw thrown
    return { kind: 'refused', of, faults: [{ field: thrown.path, value: undefined, reason: thrown.reason }] }
  }
}

/** As far as it says them. */
function refOf(raw: Raw): StoredRef {
  const metadata = own(raw, 'metadata')
  const said = (from: unknown, key: string): string => {
    const found = isObject(from) ? own(from, key) : undefined
    return typeof found === 'string' ? found : ''
  }
  return { kind: said(raw, 'kind'), namespace: said(metadata, 'namespace'), name: said(metadata, 'name'), uid: said(metadata, 'uid') }
}

function storedWith(raw: Raw, ref: StoredRef): StoredObject {
  if (ref.kind === '') throw new FieldError('kind', 'is missing')
  if (ref.name === '') throw new FieldError('metadata.name', 'is missing')
  const metadata = record(raw, 'metadata')
  if (own(metadata, 'deletionTimestamp') !== undefined)
    throw new FieldError('metadata.deletionTimestamp', 'the object is being deleted: wait until it is gone')
  const outer = under('metadata', () => ({ labels: texts(metadata, 'labels'), annotations: texts(metadata, 'annotations') }))
  const written = outer.annotations[METADATA_ANNOTATION]
  return under(written === undefined ? 'metadata' : `metadata.annotations['${METADATA_ANNOTATION}']`, () => {
    const inner = written === undefined ? metadata : parsed(written)
    return {
      ref,
      shownName: written === undefined || text(inner, 'name') === '' ? undefined : text(inner, 'name'),
      labels: { ...outer.labels, ...texts(inner, 'labels') },
      annotations: visible({ ...outer.annotations, ...texts(inner, 'annotations') }),
      kept: keptOf(inner, metadata),
      ownerReferences: each(own(inner, 'ownerReferences') === undefined ? metadata : inner, 'ownerReferences', asObject),
      spec: own(raw, 'spec'),
    }
  })
}

function visible(annotations: Readonly<Record<string, string>>): StoredObject['annotations'] {
  return Object.fromEntries(Object.entries(annotations).filter(([key]) => key !== METADATA_ANNOTATION))
}

function keptOf(inner: Raw, outer: Raw): Raw {
  const created = text(inner, 'creationTimestamp') ?? text(outer, 'creationTimestamp')
  const finalizers = own(inner, 'finalizers') ?? own(outer, 'finalizers')
  return { ...(created === undefined ? {} : { creationTimestamp: created }), ...(finalizers === undefined ? {} : { finalizers }) }
}

function parsed(written: string): Raw {
  try {
    return asObject(JSON.parse(written))
  } catch (thrown) {
    throw thrown instanceof SyntaxError ? new FieldError('', 'is no JSON') : thrown
  }
}

function asObject(value: unknown): Raw {
  if (isObject(value)) return value
  throw new FieldError('', 'must be an object')
}

function texts(raw: Raw, key: string): Readonly<Record<string, string>> {
  const entries = Object.entries(record(raw, key)).map(([name, value]) => {
    if (typeof value !== 'string') throw new FieldError(`${key}['${name}']`, 'must be text')
    return [name, value] as const
  })
  return Object.fromEntries(entries)
}
