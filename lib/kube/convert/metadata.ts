// SPDX-License-Identifier: Apache-2.0
/** Metadata of an object that takes another form. Layer: lib/kube. */
import { inside, only, own, record, type Raw } from '../parse/fields.ts'

/** What a server adds to each object, and `kubectl get` shows. */
const OF_SERVER = ['uid', 'resourceVersion', 'generation', 'creationTimestamp', 'managedFields', 'selfLink']

const CARRIED = ['name', 'namespace', 'labels', 'annotations']

/** The former object as a whole: another `kubectl apply` would compare with it. */
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration'

/** Throws FieldError for owners, finalizers and the like, which mean something to a server. */
export function carriedMetadata(raw: Raw): Raw {
  return inside(raw, 'metadata', (metadata) => {
    only(metadata, [...CARRIED, ...OF_SERVER])
    return saidOnly({
      ...Object.fromEntries(CARRIED.map((name) => [name, own(metadata, name)])),
      annotations: without(record(metadata, 'annotations'), LAST_APPLIED),
    })
  })
}

export function without(raw: Raw, ...names: readonly string[]): Raw {
  return Object.fromEntries(Object.entries(raw).filter(([name]) => !names.includes(name)))
}

/** Without what is undefined, or an object without fields. */
export function saidOnly(raw: Raw): Raw {
  const isSaid = (value: unknown): boolean =>
    typeof value === 'object' && value !== null ? Object.keys(value).length > 0 : value !== undefined
  return Object.fromEntries(Object.entries(raw).filter(([, value]) => isSaid(value)))
}
