// SPDX-License-Identifier: Apache-2.0
/** A small API server over plain HTTP that can be made to do what a real one does only in an accident. Layer: test. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ApiServer } from '#lib/api/connection/server.ts'
import { freePort } from '../../../testkit/base/free-port.ts'

type Raw = Readonly<Record<string, unknown>>

interface Watcher {
  readonly collection: string
  /** it gets only events after this */
  readonly from: number
  readonly response: ServerResponse
}

/** Without it nothing else is believed. */
const ALWAYS = 'nodenetworks'
const GROUPS = ['netplane.io/v3', 'policy.networking.k8s.io/v1alpha1', 'policy.networking.k8s.io/v1alpha2']

/** What one request is to get instead of an answer; undefined: the usual one. */
export type Fault = (
  request: { readonly path: string; readonly query: URLSearchParams; readonly accept: string; readonly authorization: string },
  response: ServerResponse,
) => boolean

export class FakeServer implements AsyncDisposable {
  readonly #http: Server
  readonly #objects = new Map<string, Map<string, Raw>>()
  readonly #watchers = new Set<Watcher>()
  #version = 100
  /** of requests, in the order in which they came */
  readonly requests: string[] = []
  /** asked first; true: it has answered */
  fault: Fault = () => false
  /** group version → kinds, by plural */
  readonly groups = new Map<string, readonly string[]>()
  /** the least version that watches may begin at */
  oldest = 0

  private constructor(http: Server) {
    this.#http = http
    http.on('request', (request, response) => {
      this.#answer(request, response)
    })
  }

  /** On a port that it can have again, when none is given. */
  static async start(port?: number, address?: string): Promise<FakeServer> {
    const fake = new FakeServer(createServer())
    await fake.listen(port ?? (await freePort()), address)
    return fake
  }

  get server(): ApiServer {
    const { port } = this.#http.address() as AddressInfo
    const nothing = (): Promise<Record<string, string>> => Promise.resolve({})
    return { protocol: 'http:', host: '127.0.0.1', port, prefix: '', tls: nothing, headers: nothing }
  }

  get version(): string {
    return String(this.#version)
  }

  /** `collection`: "/api/v1/services" */
  put(collection: string, object: { readonly metadata: { readonly namespace?: string; readonly name: string } } & Raw): void {
    const key = `${object.metadata.namespace ?? ''}/${object.metadata.name}`
    const stored = { ...object, metadata: { ...object.metadata, resourceVersion: String(++this.#version) } }
    const type = this.#of(collection).has(key) ? 'MODIFIED' : 'ADDED'
    this.#of(collection).set(key, stored)
    this.#tell(collection, { type, object: stored })
  }

  delete(collection: string, key: string): void {
    const object = this.#of(collection).get(key)
    this.#of(collection).delete(key)
    this.#version++
    this.#tell(collection, {
      type: 'DELETED',
      object: { ...object, metadata: { ...(object?.['metadata'] as Raw), resourceVersion: this.version } },
    })
  }

  /** Changes it behind the watchers' backs. */
  quietly(change: () => void): void {
    const watchers = [...this.#watchers]
    this.#watchers.clear()
    change()
    for (const watcher of watchers) this.#watchers.add(watcher)
  }

  /** Any text, to all watches of the collection. */
  say(collection: string, text: string): void {
    for (const watcher of this.#watchers) if (watcher.collection === collection) watcher.response.write(text)
  }

  endWatches(collection: string): void {
    for (const watcher of this.#watchers) if (watcher.collection === collection) watcher.response.end()
  }

  /** How many watches of the collection there are. */
  watching(collection: string): number {
    return [...this.#watchers].filter((watcher) => watcher.collection === collection).length
  }

  cut(): void {
    this.#http.closeAllConnections()
  }

  /** Gone, until it listens again on the same port. */
  async stop(): Promise<void> {
    this.#http.close()
    this.cut()
    await once(this.#http, 'close')
  }

  async listen(port: number, address = '127.0.0.1'): Promise<void> {
    this.#http.listen(port, address)
    await once(this.#http, 'listening')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  #of(collection: string): Map<string, Raw> {
    const objects = this.#objects.get(collection) ?? new Map<string, Raw>()
    this.#objects.set(collection, objects)
    return objects
  }

  #tell(collection: string, event: object): void {
    for (const watcher of this.#watchers)
      if (watcher.collection === collection && watcher.from < this.#version) watcher.response.write(`${JSON.stringify(event)}\n`)
  }

  /** As if that much had happened to objects that no client asks for. */
  reach(version: number): void {
    this.#version = version
  }

  /** From a backup: its objects and its version are those of then. Returns how to do so. */
  backUp(): () => void {
    const version = this.#version
    const objects = [...this.#objects].map(([collection, all]) => [collection, new Map(all)] as const)
    return () => {
      this.#version = version
      this.#objects.clear()
      for (const [collection, all] of objects) this.#objects.set(collection, new Map(all))
    }
  }

  #answer({ url = '', headers: { accept = '', authorization = '' } }: IncomingMessage, response: ServerResponse): void {
    const { pathname: path, searchParams: query } = new URL(url, 'http://fake')
    this.requests.push(`${path}${query.get('watch') === 'true' ? ` watch ${query.get('resourceVersion') ?? ''}` : ''}`)
    if (this.fault({ path, query, accept, authorization }, response)) return
    if (path === '/apis')
      return json(response, 200, { groups: [...this.groups.keys()].map((name) => ({ versions: [{ groupVersion: name }] })) })
    const group = GROUPS.find((name) => path.startsWith(`/apis/${name}`))
    const plurals = group === undefined ? undefined : (this.groups.get(group) ?? [])
    if (path === `/apis/${group ?? ''}`)
      return plurals?.length ? json(response, 200, { resources: plurals.map((name) => ({ name })) }) : refuse(response, 404, 'NotFound')
    const plural = path.slice(path.lastIndexOf('/') + 1)
    if (plurals !== undefined && plural !== ALWAYS && !plurals.includes(plural)) return refuse(response, 404, 'NotFound')
    if (query.get('watch') === 'true') this.#watch(path, Number(query.get('resourceVersion')), response)
    else this.#list(path, query, response)
  }

  #watch(collection: string, from: number, response: ServerResponse): void {
    if (from < this.oldest) return refuseAsEvent(response, 410, 'Expired')
    response.writeHead(200, { 'content-type': 'application/json' })
    response.flushHeaders()
    const watcher = { collection, from, response }
    this.#watchers.add(watcher)
    response.on('close', () => this.#watchers.delete(watcher))
    for (const object of this.#of(collection).values())
      if (Number((object['metadata'] as Raw)['resourceVersion']) > from) response.write(`${JSON.stringify({ type: 'MODIFIED', object })}\n`)
  }

  #list(collection: string, query: URLSearchParams, response: ServerResponse): void {
    const all = [...this.#of(collection).values()]
    const from = Number(query.get('continue') ?? 0)
    const limit = Number(query.get('limit')) || all.length
    const next = from + limit < all.length ? String(from + limit) : undefined
    json(response, 200, { kind: 'List', metadata: { resourceVersion: this.version, continue: next }, items: all.slice(from, from + limit) })
  }
}

export function json(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify(value))
}

export function service(name: string, port: unknown = 80) {
  return { metadata: { namespace: 'default', name }, spec: { clusterIP: '10.0.0.1', ports: [{ port }] } }
}

export function refuse(response: ServerResponse, status: number, reason: string): void {
  json(response, status, statusOf(status, reason))
}

/** Byte by byte, for ever. */
export async function dribble(response: ServerResponse): Promise<void> {
  response.writeHead(200, { 'content-type': 'application/json' })
  while (!response.destroyed) {
    response.write(' ')
    await sleep(5)
  }
}

/** As a watch is refused that has begun. */
export function refuseAsEvent(response: ServerResponse, status: number, reason: string): void {
  response.writeHead(200, { 'content-type': 'application/json' })
  response.end(`${JSON.stringify({ type: 'ERROR', object: statusOf(status, reason) })}\n`)
}

function statusOf(code: number, reason: string): object {
  return { kind: 'Status', apiVersion: 'v1', status: 'Failure', message: `made to fail: ${reason}`, reason, code }
}
