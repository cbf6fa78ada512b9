// SPDX-License-Identifier: Apache-2.0
/** gRPC over HTTP/2, until it is disposed of. Layer: flows. */
import { createSecureServer, createServer, type Http2SecureServer, type Http2Server, type ServerHttp2Session } from 'node:http2'
import { TLSSocket } from 'node:tls'
import { createContextValues } from '@connectrpc/connect'
import { connectNodeAdapter } from '@connectrpc/connect-node'
import { listenAt } from '#lib/base/os/listen.ts'
import type { Aggregator } from '../aggregator.ts'
import { NODE, PEER, services } from './services.ts'
import { readTls, type TlsFiles } from './tls.ts'

/** Bytes of a request or an update; one of a node has a few hundred. */
const MOST_BYTES = 1 << 20
const MOST_SESSIONS = 20_000

export class GrpcServer implements AsyncDisposable {
  readonly #server: Http2Server | Http2SecureServer
  readonly #tls: TlsFiles | undefined
  readonly #sessions = new Set<ServerHttp2Session>()

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
    this.#server = tls === undefined ? createServer(handler) : createSecureServer({ ...readTls(tls), ...known }, handler)
    this.#server.on('session', (session) => {
      if (this.#sessions.size >= MOST_SESSIONS) {
        session.destroy()
        return
      }
      this.#sessions.add(session)
      // the other end has gone: its streams end by themselves
      session.on('error', () => undefined)
      session.on('close', () => this.#sessions.delete(session))
    })
  }

  /** Resolves with the port; rejects with Node's error (EADDRINUSE). */
  start(host: string | undefined, port: number): Promise<number> {
    return listenAt(this.#server, { host, port })
  }

  /** Certificates may be others by now; connections that are there stay. Throws Node's errors. */
  renew(): void {
    if (this.#tls !== undefined && 'setSecureContext' in this.#server) this.#server.setSecureContext(readTls(this.#tls))
  }

  [Symbol.asyncDispose](): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => {
        resolve()
      })
      for (const session of this.#sessions) session.destroy()
    })
  }
}

/** Whom the certificate is for. */
function nameOf(socket: TLSSocket): string {
  const { CN } = socket.getPeerCertificate().subject
  return [CN].flat()[0] ?? ''
}
