// SPDX-License-Identifier: Apache-2.0
/** An API server that only knows services and slices, for clients that list and watch them: pages, one at a time, or
 * all at once for a client that does not ask for pages, made beforehand, as JSON or Protocol Buffers; then each
 * changed slice that is asked for on standard input. Layer: bench. */
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { createInterface } from 'node:readline'
import { PROTOBUF } from '#lib/api/decode/envelopes.ts'
import type { Message } from '#lib/api/decode/protobuf.ts'
import { service, slice } from '../generate.ts'
import { encode, enveloped, framed, prefixed } from './encode.ts'
import { SERVICE, SLICE } from './server-messages.ts'

const ENDPOINTS = 10
/** As large as the source asks for. */
const PAGE = 250
/** What a real server keeps with each object for itself. */
const MANAGED = [
  {
    manager: 'kube-controller-manager',
    operation: 'Update',
    apiVersion: 'v1',
    time: '2026-01-01T00:00:00Z',
    fieldsType: 'FieldsV1',
    fieldsV1: {
      'f:metadata': { 'f:generateName': {}, 'f:labels': { '.': {}, 'f:app': {}, 'f:endpointslice.kubernetes.io/managed-by': {} } },
      'f:spec': { 'f:internalTrafficPolicy': {}, 'f:ports': {}, 'f:selector': {}, 'f:sessionAffinity': {}, 'f:type': {} },
    },
  },
]

const EMPTY = '{"metadata":{"resourceVersion":"1"},"items":[]}'

interface Kind {
  readonly make: (at: number) => object
  readonly message: Message
}

const KINDS: Readonly<Record<string, Kind>> = {
  services: { make: service, message: SERVICE },
  endpointslices: { make: (at) => slice(at, ENDPOINTS), message: SLICE },
}

type Encode = (kind: Kind, items: readonly object[], next: string | undefined) => Buffer

async function main([count = '10000']: readonly string[]): Promise<void> {
  const kinds = Object.entries(KINDS)
  const pages = Object.fromEntries(kinds.map(([name, kind]) => [name, pagesOf(Number(count), kind, asJson)]))
  const coded = Object.fromEntries(kinds.map(([name, kind]) => [name, pagesOf(Number(count), kind, asProtobuf)]))
  const whole = Object.fromEntries(kinds.map(([name, kind]) => [name, asJson(kind, itemsOf(kind, 0, Number(count)), undefined)]))
  const watchers = new Map<ServerResponse, boolean>()
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://here')
    const name = pathname.slice(pathname.lastIndexOf('/') + 1)
    const isCoded = name in coded && request.headers.accept?.startsWith(PROTOBUF) === true
    response.setHeader('content-type', isCoded ? PROTOBUF : 'application/json')
    if (searchParams.get('watch') === 'true') {
      response.flushHeaders()
      if (name === 'endpointslices') watchers.set(response, isCoded)
    } else if (pathname === '/apis') response.end('{"groups":[]}')
    else if ((pathname.startsWith('/apis/netplane.io') && name !== 'nodenetworks') || pathname.startsWith('/apis/policy'))
      response.writeHead(404).end('{}')
    else if (searchParams.has('limit')) response.end((isCoded ? coded : pages)[name]?.[Number(searchParams.get('continue') ?? 0)] ?? EMPTY)
    else response.end(whole[name] ?? EMPTY)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const bytes = Object.values(coded)
    .flat()
    .reduce((sum, page) => sum + page.length, 0)
  process.stdout.write(`${JSON.stringify({ port: typeof address === 'object' ? address?.port : 0, bytes })}\n`)
  for await (const line of createInterface(process.stdin)) {
    const events = Array.from({ length: Number(line) }, (_, at) => changed(at % Number(count), at + 1))
    for (const [watcher, isCoded] of watchers)
      for (const event of events) watcher.write(isCoded ? frameOf(event) : `${JSON.stringify({ type: 'MODIFIED', object: event })}\n`)
  }
  process.exit()
}

function pagesOf(count: number, kind: Kind, encodeList: Encode): readonly Buffer[] {
  const all = Math.ceil(count / PAGE)
  return Array.from({ length: all }, (_, page) => {
    const items = itemsOf(kind, page * PAGE, Math.min(count, (page + 1) * PAGE))
    return encodeList(kind, items, page + 1 < all ? String(page + 1) : undefined)
  })
}

function itemsOf({ make }: Kind, from: number, to: number): readonly object[] {
  return Array.from({ length: to - from }, (_, at) => managed(make(from + at)))
}

function asJson(_: Kind, items: readonly object[], next: string | undefined): Buffer {
  return Buffer.from(JSON.stringify({ kind: 'List', apiVersion: 'v1', metadata: { resourceVersion: '20000', continue: next }, items }))
}

function asProtobuf({ message }: Kind, items: readonly object[], next = ''): Buffer {
  const metadata = Buffer.concat([prefixed(2, Buffer.from('20000')), prefixed(3, Buffer.from(next))])
  return enveloped('List', Buffer.concat([prefixed(1, metadata), ...items.map((item) => prefixed(2, encode(message, item)))]))
}

/** As a part of a watch. */
function frameOf(object: object): Buffer {
  const item = enveloped('EndpointSlice', encode(SLICE, object))
  return framed(Buffer.concat([prefixed(1, Buffer.from('MODIFIED')), prefixed(2, prefixed(1, item))]))
}

function changed(at: number, generation: number): object {
  const object = managed(slice(at, ENDPOINTS, generation))
  return { ...object, metadata: { ...metadataOf(object), resourceVersion: String(20_000 + generation) } }
}

function managed(object: object): object {
  return { ...object, metadata: { ...metadataOf(object), managedFields: MANAGED } }
}

function metadataOf(object: object): object {
  const metadata: unknown = Reflect.get(object, 'metadata')
  return typeof metadata === 'object' && metadata !== null ? metadata : {}
}

await main(process.argv.slice(2))
