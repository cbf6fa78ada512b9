// SPDX-License-Identifier: Apache-2.0
import { Readable } from 'node:stream'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { systemClock } from '#lib/base/clock.ts'
import { answerOf, eventsOf, pageOf } from '#lib/api/decode/answer.ts'
import { PROTOBUF } from '#lib/api/decode/envelopes.ts'
import { ApiError, UnreadableError } from '#lib/api/errors.ts'
import { messageFor } from '#lib/api/decode/messages.ts'
import { messageOf, one } from '#lib/api/decode/protobuf.ts'
import type { HttpResponse } from '#lib/api/connection/transport.ts'
import { encode, enveloped, framed, prefixed } from '../../../../bench/control/encode.ts'

const SERVICE = messageFor({ apiVersion: 'v1', kind: 'Service' }) ?? []
const LIST_METADATA = messageOf({ 2: one('resourceVersion', 'text'), 3: one('continue', 'text') })
const STATUS = messageOf({ 3: one('message', 'text'), 4: one('reason', 'text'), 6: one('code', 'number') })

const READING = { message: SERVICE, clock: systemClock }

const WEB = { metadata: { name: 'web', namespace: 'default', resourceVersion: '7' } }
const LIST = { metadata: { resourceVersion: '9', continue: 'more' }, items: [WEB] }
const REFUSED = { message: 'not yours', reason: 'Forbidden', code: 403 }

function response(bytes: Buffer, more: { readonly status?: number; readonly type?: string; readonly packed?: boolean } = {}): HttpResponse {
  const { status = 200, type = PROTOBUF, packed = false } = more
  const headers = { 'content-type': type, ...(packed ? { 'content-encoding': 'gzip' } : {}) }
  const sent = packed ? gzipSync(bytes) : bytes
  // in two parts, as they may come
  return { status, headers, body: Readable.from([sent.subarray(0, 5), sent.subarray(5)]) }
}

function listBytes(): Buffer {
  const metadata = prefixed(1, encode(LIST_METADATA, LIST.metadata))
  return enveloped('ServiceList', Buffer.concat([metadata, prefixed(2, encode(SERVICE, WEB))]))
}

function eventBytes(type: string, object: Buffer): Buffer {
  return framed(Buffer.concat([prefixed(1, Buffer.from(type)), prefixed(2, prefixed(1, object))]))
}

const FORMS = [
  { form: 'Protocol Buffers', type: PROTOBUF, list: listBytes(), refused: enveloped('Status', encode(STATUS, REFUSED)) },
  {
    form: 'JSON',
    type: 'application/json',
    list: Buffer.from(JSON.stringify(LIST)),
    refused: Buffer.from(JSON.stringify({ kind: 'Status', ...REFUSED })),
  },
].flatMap((one) => [false, true].map((packed) => ({ ...one, packed })))

describe.each(FORMS)('an answer as $form, packed: $packed', ({ type, list, refused, packed }) => {
  test('has a page', async () => {
    const page = await pageOf(response(list, { type, packed }), 'GET /x', READING)
    expect({ ...page, items: [...page.items] }).toEqual({ resourceVersion: '9', continue: 'more', items: [WEB] })
  })

  test('has a refusal', async () => {
    const sent = (): HttpResponse => response(refused, { status: 403, type, packed })
    const error = new ApiError({ status: 403, reason: 'Forbidden', said: 'not yours', message: 'GET /x: not yours' })
    await expect(answerOf(sent(), 'GET /x', SERVICE)).rejects.toThrow(error)
    await expect(pageOf(sent(), 'GET /x', READING)).rejects.toThrow(error)
  })
})

describe('Protocol Buffers', () => {
  test('that are none, or of which an object is none, are unreadable, not refused', async () => {
    await expect(pageOf(response(Buffer.from('{"items":[]}')), 'GET /x', READING)).rejects.toThrow(UnreadableError)
    const broken = enveloped('ServiceList', Buffer.concat([prefixed(1, Buffer.from([0x12, 1, 0x39])), prefixed(2, Buffer.from([0x0a, 9]))]))
    const page = await pageOf(response(broken), 'GET /x', READING)
    expect(() => [...page.items]).toThrow(UnreadableError)
  })

  test('of a watch have changes, bookmarks and refusals', async () => {
    const events = Buffer.concat([
      eventBytes('ADDED', enveloped('Service', encode(SERVICE, WEB))),
      eventBytes('BOOKMARK', enveloped('Service', encode(SERVICE, { metadata: { resourceVersion: '8' } }))),
      eventBytes('ERROR', enveloped('Status', encode(STATUS, { ...REFUSED, code: 410 }))),
    ])
    const all: unknown[] = []
    for await (const batch of eventsOf(response(events), 'watch', SERVICE)) all.push(...batch)
    expect(all).toEqual([
      { type: 'ADDED', object: WEB },
      { type: 'BOOKMARK', object: { metadata: { resourceVersion: '8' } } },
      { type: 'ERROR', object: { ...REFUSED, code: 410 } },
    ])
  })
})
