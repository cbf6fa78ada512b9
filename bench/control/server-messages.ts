// SPDX-License-Identifier: Apache-2.0
/** What a server says of services and slices, not only what is read of them. Layer: bench (pure). */
import { messageFor } from '#lib/api/decode/messages.ts'
import { many, messageOf, one, type Field, type Message } from '#lib/api/decode/protobuf.ts'
import { InternalError } from '#lib/base/errors.ts'

const OWNER = messageOf({
  ...{ 1: one('kind', 'text'), 3: one('name', 'text'), 4: one('uid', 'text'), 5: one('apiVersion', 'text') },
  ...{ 6: one('controller', 'flag'), 7: one('blockOwnerDeletion', 'flag') },
})

const MANAGED = messageOf({
  ...{ 1: one('manager', 'text'), 2: one('operation', 'text'), 3: one('apiVersion', 'text'), 4: one('time', 'time') },
  ...{ 6: one('fieldsType', 'text'), 7: one('fieldsV1', 'bytes') },
})

const METADATA = {
  ...{ 5: one('uid', 'text'), 7: one('generation', 'number'), 8: one('creationTimestamp', 'time') },
  ...{ 13: many('ownerReferences', OWNER), 17: many('managedFields', MANAGED) },
}

const TARGET = messageOf({ 1: one('kind', 'text'), 2: one('namespace', 'text'), 3: one('name', 'text'), 4: one('uid', 'text') })

export const SERVICE = read('v1', 'Service', {
  1: { metadata: METADATA },
  2: { spec: { 2: one('selector', 'texts-by-key'), 17: one('ipFamilyPolicy', 'text') } },
})

export const SLICE = read('discovery.k8s.io/v1', 'EndpointSlice', {
  1: { metadata: METADATA },
  2: { endpoints: { 4: one('targetRef', TARGET) } },
})

type More = Readonly<Record<number, Field>>

/** The agent's own message with more in its parts. */
function read(apiVersion: string, kind: string, more: Readonly<Record<number, Readonly<Record<string, More>>>>): Message {
  const message = messageFor({ apiVersion, kind })
  if (message === undefined) throw new InternalError(`${kind} is read as JSON`)
  return message.map((field, number) => {
    const added = field === undefined ? undefined : more[number]?.[field.name]
    return field === undefined || added === undefined ? field : { ...field, form: extended(field, added) }
  })
}

function extended({ form }: Field, more: More): Message {
  const fields = typeof form === 'string' ? [] : form.map((field, number) => [number, field] as const)
  const known = Object.fromEntries(fields.flatMap(([number, field]) => (field === undefined ? [] : [[number, field] as const])))
  return messageOf({ ...known, ...more })
}
