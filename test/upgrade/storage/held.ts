// SPDX-License-Identifier: Apache-2.0
/** What a server has after it was written to, as far as an import goes by it. Layer: test. */
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { uidOf } from '../stored/stored.ts'

export function keyOf({ kind, metadata: { namespace = '', name } }: ApiObject): string {
  return `${kind}/${namespace}/${name}`
}

/** With the UIDs and times that the server gives. */
export function made(object: ApiObject): ApiObject {
  const metadata = {
    ...object.metadata,
    uid: uidOf('made', keyOf(object)),
    resourceVersion: '1',
    creationTimestamp: '2026-02-01T00:00:00Z',
  }
  return asApiObject({ ...object, metadata })
}

export function afterWrites(held: readonly ApiObject[], written: readonly ApiObject[]): readonly ApiObject[] {
  return [...new Map([...held, ...written.map(made)].map((object) => [keyOf(object), object])).values()]
}
