// SPDX-License-Identifier: Apache-2.0
/** gRPC over HTTP/2, until it is disposed of. Layer: flows. */
import { createSecureServer, createServer, type Http2SecureServer, type Http2Server, type ServerHttp2Session } from 'node:http2'
import { TLSSocket } from 'node:tls'
import { createContextValues } from '@connectrpc/connect'
import { connectNodeAdapter } from '@connectrpc/connect-node'
import { Guard, type Guest } from '#lib/base/os/guard.ts'
import { GuardedServer } from '#lib/base/os/guarded-server.ts'
import type { Aggregator } from '../aggregator.ts'
import { NODE, PEER, services } from './services.ts'
import { readTls, type TlsFiles } from './tls.ts'

/** Bytes of a request or an update; one of a node has a few hundred. */
const MOST_BYTES = 1 << 20
/** A node has one connection. A handshake costs a millisecond of the processor. */
const LIMITS = { most: 20_000, perPeer: 256, perSecond: 50, sayMs: 5000 }
/** Who has made himself known may stay so long without a question. */
const QUIET_MS = 300_000

export class GrpcServer implements AsyncDisposable {
  /** does not listen itself */
  readonly #http: Http2Server | Http2SecureServer
  readonly #server: GuardedServer
  readonly #tls: TlsFiles | undefined
  /** by the address and the port of the other end */
  readonly #guests = new Map<string, Guest>()

  /** `tls`: who asks is known by a certificate of that authority; undefined: for this machine alone */
  constructor(aggregator: Aggregator, tls?: TlsFiles) {
    this.#tls = tls
    const handler = connectNodeAdapter({
      routes: services(aggregator),
      grpcWeb: false,
      connect: false,
      readMaxBytes: MOST_BYTES,
      contextValues: ({ socket }) => {
        const name = socket instanceof TLSSocket ? nameOf(socket) : undefined
        return createContextValues()
          .set(PEER, name ?? socket.remoteAddress ?? '')
          .set(NODE, name)
      },
    })
    const known = { requestCert: true, rejectUnauthorized: true, minVersion: 'TLSv1.2' } as const
    this.#http = tls === undefined ? createServer(handler) : createSecureServer({ ...readTls(tls), ...known }, handler)
    this.#http.on('session', (session) => {
      this.#watch(session)
    })
    this.#server = new GuardedServer({
      guard: new Guard(LIMITS),
      serve: (guest) => {
        const end = endOf(guest.socket)
        this.#guests.set(end, guest)
        guest.socket.once('close', () => this.#guests.delete(end))
        this.#http.emit('connection', guest.socket)
      },
    })
  }

  /** Resolves with the port; rejects with Node's error (EADDRINUSE). */
  start(host: string | undefined, port: number): Promise<number> {
    return this.#server.listenAt({ host, port })
  }

  /** Certificates may be others by now; connections that are there stay. Throws Node's errors. */
  renew(): void {
    if (this.#tls !== undefined && 'setSecureContext' in this.#http) this.#http.setSecureContext(readTls(this.#tls))
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#server[Symbol.asyncDispose]()
  }

  /** It gives way while nothing is asked in it. */
  #watch(session: ServerHttp2Session): void {
    const guest = this.#guests.get(endOf(session.socket))
    let streams = 0
    guest?.idle(LIMITS.sayMs)
    session.on('stream', (stream) => {
      streams++
      guest?.busy()
      stream.once('close', () => {
        if (--streams === 0) guest?.idle(QUIET_MS)
      })
    })
    // the other end has gone: its streams end by themselves
    session.on('error', () => undefined)
  }
}

function endOf({ remoteAddress, remotePort }: Pick<Guest['socket'], 'remoteAddress' | 'remotePort'>): string {
  return `${remoteAddress ?? ''} ${remotePort ?? 0}`
}

/** Whom the certificate is for. */
function nameOf(socket: TLSSocket): string {
  const { CN } = socket.getPeerCertificate().subject
  return [CN].flat()[0] ?? ''
}
