// SPDX-License-Identifier: Apache-2.0
/** When an Installation asked for the mode that it asks for. Layer: operator (pure). */
import type { ApiObject } from '#lib/api/resource.ts'
import { fieldsOf, objectsIn, textOf } from '#lib/base/object.ts'

/** When it was made, or a client that has written `linuxDataplane` last changed any field, which is what the server
 * keeps account of; in ms since 1970. */
export function askedAt({ metadata }: ApiObject): number {
  const writes = objectsIn(metadata['managedFields'])
    .filter(({ fieldsV1 }) => 'f:linuxDataplane' in networkOf(fieldsV1))
    .map(({ time }) => textOf(time))
  const times = [metadata.creationTimestamp ?? '', ...writes].map((text) => Date.parse(text))
  return Math.max(0, ...times.filter((time) => !Number.isNaN(time)))
}

function networkOf(fields: unknown): Readonly<Record<string, unknown>> {
  return fieldsOf(fieldsOf(fieldsOf(fields)['f:spec'])['f:netplaneNetwork'])
}
