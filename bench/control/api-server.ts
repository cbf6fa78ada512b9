// SPDX-License-Identifier: Apache-2.0
/** An API server that only knows services and slices, for those who list and watch them: pages, one at a time, or all at once for who does
 * not ask for pages, made beforehand; then a line for each changed slice that is asked for on standard input. Layer: bench. */
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { createInterface } from 'node:readline'
import { service, slice } from '../generate.ts'

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

const KINDS = { services: service, endpointslices: (at: number) => slice(at, ENDPOINTS) } as const

async function main([count = '10000']: readonly string[]): Promise<void> {
  const pages = Object.fromEntries(Object.entries(KINDS).map(([name, make]) => [name, pagesOf(Number(count), make)]))
  const whole = Object.fromEntries(Object.entries(KINDS).map(([name, make]) => [name, pageOf(Number(count), make)]))
  const watchers = new Set<ServerResponse>()
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://here')
    const name = pathname.slice(pathname.lastIndexOf('/') + 1)
    response.setHeader('content-type', 'application/json')
    if (searchParams.get('watch') === 'true') {
      response.flushHeaders()
      if (name === 'endpointslices') watchers.add(response)
    } else if (pathname === '/apis') response.end('{"groups":[]}')
    else if (pathname.startsWith('/apis/netplane.io') || pathname.startsWith('/apis/policy')) response.writeHead(404).end('{}')
    else if (searchParams.has('limit')) response.end(pages[name]?.[Number(searchParams.get('continue') ?? 0)] ?? EMPTY)
    else response.end(whole[name] ?? EMPTY)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const bytes = Object.values(pages)
    .flat()
    .reduce((sum, page) => sum + page.length, 0)
  process.stdout.write(`${JSON.stringify({ port: typeof address === 'object' ? address?.port : 0, bytes })}\n`)
  for await (const line of createInterface(process.stdin)) {
    const events = Array.from({ length: Number(line) }, (_, at) => `${JSON.stringify(changed(at % Number(count), at + 1))}\n`)
    for (const watcher of watchers) for (const event of events) watcher.write(event)
  }
  process.exit()
}

function pagesOf(count: number, make: (at: number) => object): readonly Buffer[] {
  const all = Math.ceil(count / PAGE)
  return Array.from({ length: all }, (_, page) => {
    const next = page + 1 < all ? String(page + 1) : undefined
    return pageOf(Math.min(PAGE, count - page * PAGE), (at) => make(page * PAGE + at), next)
  })
}

function pageOf(count: number, make: (at: number) => object, next?: string): Buffer {
  const items = Array.from({ length: count }, (_, at) => managed(make(at)))
  return Buffer.from(JSON.stringify({ kind: 'List', apiVersion: 'v1', metadata: { resourceVersion: '20000', continue: next }, items }))
}

function changed(at: number, generation: number): object {
  const object = managed(slice(at, ENDPOINTS, generation))
  return {
    type: 'MODIFIED',
    object: { ...object, metadata: { ...metadataOf(object), resourceVersion: String(20_000 + generation) } },
  }
}

function managed(object: object): object {
  return { ...object, metadata: { ...metadataOf(object), managedFields: MANAGED } }
}

function metadataOf(object: object): object {
  const metadata: unknown = Reflect.get(object, 'metadata')
  return typeof metadata === 'object' && metadata !== null ? metadata : {}
}

await main(process.argv.slice(2))
