// SPDX-License-Identifier: Apache-2.0
/** A process of its own: calls one POST off at the moment that its first argument names, and prints what came of it.
 * The second argument is a folder with certificates. Layer: test. */
import { subscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { constants, createSecureServer, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setImmediate as turn } from 'node:timers/promises'
import { Transport, type HttpRequest } from '#lib/api/connection/transport.ts'
import { until } from '../../../../testkit/base/until.ts'

export type Moment = 'connecting' | 'queued' | 'same tick' | 'headers' | 'body' | 'answer'

export interface Outcome {
  readonly error: string
  /** with which the server heard of the end of the POST's stream; nothing when it had not heard of the POST */
  readonly codes: readonly number[]
  /** to another request over the same connection */
  readonly next: number
  readonly connections: number
}

const [moment, folder] = process.argv.slice(2) as [Moment, string]
const called = new AbortController()
const callOff = (): void => {
  called.abort(new Error('called off'))
}

const codes: number[] = []
let connections = 0
let posts = 0
const held: ServerHttp2Stream[] = []
const server = createSecureServer({
  cert: readFileSync(join(folder, 'server.crt')),
  key: readFileSync(join(folder, 'server.key')),
  settings: moment === 'queued' ? { maxConcurrentStreams: 1 } : {},
})
server.on('session', () => connections++)
server.on('stream', (stream, headers) => {
  stream.on('error', () => undefined)
  if (headers[':path'] === '/held') {
    stream.respond()
    held.push(stream)
  } else if (headers[':method'] === 'GET') {
    stream.respond()
    stream.end()
  } else {
    posts++
    stream.on('close', () => codes.push(stream.rstCode))
    // unread, a body of more than the window (64 KiB) does not come to its end
    if (moment !== 'headers') stream.resume()
    if (moment === 'headers') callOff()
    if (moment === 'body') stream.on('end', callOff)
    if (moment === 'answer') stream.respond()
  }
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')

const nothing = (): Promise<Record<string, string>> => Promise.resolve({})
const { port } = server.address() as AddressInfo
const ca = readFileSync(join(folder, 'authority.crt'), 'utf8')
const transport = new Transport({
  server: { protocol: 'https:', host: '127.0.0.1', port, prefix: '', tls: () => Promise.resolve({ ca }), headers: nothing },
})

async function get(path: string): Promise<number> {
  const { status, body } = await transport.request({ method: 'GET', path, signal: new AbortController().signal })
  if (path !== '/held') await text(body)
  else body.on('error', () => undefined)
  return status
}

async function post(body: string): Promise<void> {
  const request: HttpRequest = { method: 'POST', path: '/', body, signal: called.signal }
  const sent = transport.request(request)
  if (moment === 'connecting') callOff()
  const answer = await sent
  if (moment === 'answer') setImmediate(callOff)
  await text(answer.body)
}

if (moment !== 'connecting') {
  await get('/')
  // the connection is at rest
  for (let turns = 0; turns < 20; turns++) await turn()
}
if (moment === 'queued') {
  await get('/held')
  setImmediate(callOff)
}
if (moment === 'same tick')
  subscribe('http2.client.stream.created', () => {
    queueMicrotask(callOff)
  })

const error = await post('x'.repeat(moment === 'headers' ? 1_000_000 : 10)).then(
  () => 'none',
  (thrown: unknown) => String(thrown),
)
for (const stream of held) stream.close(constants.NGHTTP2_NO_ERROR)
await until('the server to hear of it', () => codes.length === posts)
const next = await get('/')
await transport[Symbol.asyncDispose]()
server.close()
const outcome: Outcome = { error, codes, next, connections }
process.stdout.write(JSON.stringify(outcome))
