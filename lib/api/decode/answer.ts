// SPDX-License-Identifier: Apache-2.0
/** What a server has answered, as JSON or Protocol Buffers, packed or not → objects. Layer: lib/api. */
import { text as textOf } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { inSlices } from '../../base/async/slices.ts'
import type { Clock } from '../../base/clock.ts'
import { isObject } from '../../base/object.ts'
import { PROTOBUF, readEvent, readList, readObject } from './envelopes.ts'
import { refusalOf, UnreachableError, UnreadableError } from '../errors.ts'
import { frames } from './frames.ts'
import { jsonLines } from './json-lines.ts'
import { jsonOf, readJsonList } from './json-list.ts'
import { ProtobufError, type Message } from './protobuf.ts'
import type { HttpResponse } from '../connection/transport.ts'

export interface Page {
  /** to be taken once; throws UnreachableError at one that cannot be read */
  readonly items: Iterable<Readonly<Record<string, unknown>>>
  readonly resourceVersion: string
  /** for the next page; empty on the last one */
  readonly continue: string
}

const unpack = promisify(gunzip)

/** Throws ApiError unless the answer is good. */
export async function answerOf(response: HttpResponse, request: string, message?: Message): Promise<unknown> {
  const answer =
    isProtobuf(response) && message !== undefined
      ? await bodyBytes(response).then((bytes) => decoded(request, () => readObject(bytes, message)), endedEarly(request))
      : jsonOf(await bodyText(response).catch(endedEarly(request)))
  mustBeGood(response, request, answer)
  return answer
}

/** A page of a list. Throws ApiError unless the answer is good. */
export async function pageOf(
  response: HttpResponse,
  request: string,
  { message, clock }: { readonly message: Message | undefined; readonly clock: Pick<Clock, 'now'> },
): Promise<Page> {
  const bytes = await bodyBytes(response).catch(endedEarly(request))
  const list =
    isProtobuf(response) && message !== undefined
      ? decoded(request, () => readList(bytes, message))
      : await inSlices(readJsonList(bytes), clock)
  mustBeGood(response, request, list)
  return pageWith(list)
}

/** Of what is no object: a log. Throws ApiError unless the answer is good. */
export async function answerText(response: HttpResponse, request: string): Promise<string> {
  const text = await bodyText(response).catch(endedEarly(request))
  if (response.status >= 400) mustBeGood(response, request, jsonOf(text))
  return text
}

function mustBeGood({ status, headers }: HttpResponse, request: string, answer: unknown): void {
  const retryAfter = headers['retry-after']
  if (status >= 400) throw refusalOf(answer, { status, request, retryAfter: typeof retryAfter === 'string' ? retryAfter : undefined })
  if (answer === undefined) throw new UnreachableError(`${request}: the answer is no JSON`)
}

function endedEarly(request: string): (thrown: unknown) => never {
  return (thrown) => {
    throw new UnreachableError(`${request}: the answer ended early`, thrown)
  }
}

/** Of a watch that the server has begun, as many as have come at a time. */
export async function* eventsOf(response: HttpResponse, request: string, message?: Message): AsyncGenerator<readonly unknown[]> {
  if (message === undefined || !isProtobuf(response)) yield* jsonLines(response.body)
  else for await (const parts of frames(response.body)) yield parts.map((part) => decoded(request, () => readEvent(part, message)))
}

async function bodyText(response: HttpResponse): Promise<string> {
  return isPacked(response) ? (await bodyBytes(response)).toString() : await textOf(response.body)
}

async function bodyBytes(response: HttpResponse): Promise<Buffer> {
  const chunks: Buffer[] = []
  // Node's own way goes by a Blob, which takes a twentieth of what a list costs
  for await (const chunk of response.body) if (Buffer.isBuffer(chunk)) chunks.push(chunk)
  const bytes = Buffer.concat(chunks)
  return isPacked(response) ? await unpack(bytes) : bytes
}

function isPacked({ headers }: HttpResponse): boolean {
  return headers['content-encoding'] === 'gzip'
}

function isProtobuf({ headers }: HttpResponse): boolean {
  return String(headers['content-type']).startsWith(PROTOBUF)
}

function decoded<T>(request: string, decode: () => T): T {
  try {
    return decode()
  } catch (thrown) {
    throw thrown instanceof ProtobufError ? new UnreadableError(`${request}: the answer cannot be read`, thrown) : thrown
  }
}

function pageWith(list: unknown): Page {
  const { metadata, items } = isObject(list) ? list : {}
  const { resourceVersion, continue: next } = isObject(metadata) ? metadata : {}
  if (typeof resourceVersion !== 'string') throw new UnreadableError('the answer is no list')
  return {
    items: isIterable(items) ? objectsIn(items) : [],
    resourceVersion,
    continue: typeof next === 'string' ? next : '',
  }
}

function isIterable(value: unknown): value is Iterable<unknown> {
  return typeof value === 'object' && value !== null && Symbol.iterator in value
}

function* objectsIn(items: Iterable<unknown>): Generator<Readonly<Record<string, unknown>>> {
  try {
    for (const item of items) if (isObject(item)) yield item
  } catch (thrown) {
    throw thrown instanceof ProtobufError ? new UnreadableError('an object of the list cannot be read', thrown) : thrown
  }
}
