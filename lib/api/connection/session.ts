// SPDX-License-Identifier: Apache-2.0
/** HTTP with one address of an API server, until it no longer answers. Layer: lib/api. */
import { subscribe } from 'node:diagnostics_channel'
import type { EventEmitter } from 'node:events'
import { constants, type ClientHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import { Client, Pool, type Dispatcher } from 'undici'
import type { Clock } from '../../base/clock.ts'
import { deepEqual } from '../../base/deep-equal.ts'
import { connectTo } from './connect.ts'
import { UnreachableError } from '../errors.ts'
import { withTimeLimit } from './time-limit.ts'
import { originOf, placeOf, type ApiServer, type TlsMaterial } from './server.ts'

/** Whether the peer still answers is asked this often. */
const PING_MS = 10_000
/** After so long without an answer it is as good as gone. */
const SILENT_MS = 25_000
/** Of HTTP/2: a page of objects is to come in one go. */
const WINDOW_BYTES = 4 << 20
/** A connection without a request is closed after this. */
const IDLE_MS = 60_000
/** Lists and watches of all kinds, and requests beside them. */
const STREAMS = 250

/** undici closes the stream of a request that is called off without a code, and destroys it at once. While its body is
 * on its way Node then tells the server nothing, and writes empty frames without end if the headers had not left. With
 * this code the stream is reset at once. An error that comes later would end the process if nobody listened. */
subscribe('http2.client.stream.created', (message) => {
  const { stream } = message as { readonly stream: ClientHttp2Stream }
  const close = stream.close.bind(stream)
  stream.close = (code = constants.NGHTTP2_CANCEL, callback) => {
    close(code, callback)
  }
  stream.on('error', () => undefined)
})

export interface SessionOptions {
  readonly server: ApiServer
  readonly address: string
  readonly clock: Clock
  readonly beforeConnect?: ((address: string, port: number) => void) | undefined
  /** called once, with why, when no request on it can succeed any more */
  readonly onEnd: (reason: UnreachableError) => void
  readonly pingMs?: number | undefined
  readonly silentMs?: number | undefined
}

export class Session {
  readonly address: string
  /** "h2": everything goes over one connection, and its pings tell whether the server lives */
  readonly protocol: 'h2' | 'h1'
  /** this machine's end of the first connection */
  readonly localAddress: string | undefined
  readonly #options: SessionOptions
  readonly #dispatcher: Client | Pool
  /** of its first connection: later ones may have others */
  readonly #tls: TlsMaterial
  readonly #place: string
  #ended = false
  #stopPings: () => void = () => undefined

  private constructor(options: SessionOptions, first: Socket, tls: TlsMaterial) {
    this.#options = options
    this.#tls = tls
    this.#place = placeOf(options.server)
    this.address = options.address
    this.localAddress = first.localAddress
    this.protocol = 'alpnProtocol' in first && first.alpnProtocol === 'h2' ? 'h2' : 'h1'
    this.#dispatcher = this.protocol === 'h2' ? this.#multiplexed(first) : this.#pooled(first)
  }

  /** Rejects with UnreachableError, or the signal's reason. */
  static async open(options: SessionOptions, signal: AbortSignal): Promise<Session> {
    const tls = await tlsOf(options)
    return new Session(options, await connectTo({ ...options, tls, signal }), tls)
  }

  request(options: Omit<Dispatcher.RequestOptions, 'origin'>): Promise<Dispatcher.ResponseData> {
    return this.#dispatcher.request(options)
  }

  /** Certificates are others by now than those it began with, or the server is elsewhere. Files that cannot be read
   * just now are no others. */
  async isOutdated(): Promise<boolean> {
    if (placeOf(this.#options.server) !== this.#place) return true
    const tls = await tlsOf(this.#options).catch(() => this.#tls)
    return !deepEqual(tls, this.#tls)
  }

  /** Ends all requests on it. */
  async end(reason: UnreachableError): Promise<void> {
    if (this.#ended) return
    this.#ended = true
    this.#stopPings()
    this.#options.onEnd(reason)
    await this.#dispatcher.destroy(reason)
  }

  #endSoon(reason: UnreachableError): void {
    void this.end(reason)
  }

  #multiplexed(socket: Socket): Client {
    let unused: Socket | undefined = socket
    const { clock, address, pingMs = PING_MS, silentMs = SILENT_MS } = this.#options
    const client = new Client(originOf(this.#options.server), {
      connect: (_, callback) => {
        const ready = unused
        // not before the caller has returned: it would not notice
        queueMicrotask(() => {
          if (ready !== undefined) {
            callback(null, ready)
            return
          }
          const reason = new UnreachableError(`${address} has closed the connection`)
          callback(reason, null)
          // requests may be waiting for another connection, which is not ours to make
          this.#endSoon(reason)
        })
        unused = undefined
      },
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: IDLE_MS,
      initialWindowSize: WINDOW_BYTES,
      h2Options: { maxConcurrentStreams: STREAMS, pingInterval: pingMs, connectionWindowSize: WINDOW_BYTES },
    })
    const expectPing = (): void => {
      this.#stopPings()
      this.#stopPings = clock.after(silentMs, () => {
        this.#endSoon(new UnreachableError(`${address} does not answer`))
      })
    }
    expectPing()
    const events: EventEmitter = client
    events.on('ping', expectPing)
    client.on('disconnect', (_origin, _targets, error) => {
      this.#endSoon(new UnreachableError(`${address}: the connection ended`, error))
    })
    return client
  }

  #pooled(socket: Socket): Pool {
    let unused: Socket | undefined = socket
    const { server, address } = this.#options
    return new Pool(originOf(server), {
      connect: (_, callback) => {
        const ready = unused
        unused = undefined
        if (ready !== undefined && !ready.destroyed) {
          // not before the caller has returned: it would not notice
          queueMicrotask(() => {
            callback(null, ready)
          })
          return
        }
        this.#another().then(
          (next) => {
            callback(null, next)
          },
          (thrown: unknown) => {
            const error = thrown instanceof UnreachableError ? thrown : new UnreachableError(address, thrown)
            callback(error, null)
            this.#endSoon(error)
          },
        )
      },
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: IDLE_MS,
    })
  }

  async #another(): Promise<Socket> {
    const tls = await tlsOf(this.#options)
    return await connectTo({ ...this.#options, tls, signal: AbortSignal.timeout(60_000) })
  }
}

function tlsOf({ server, clock }: Pick<SessionOptions, 'server' | 'clock'>): Promise<TlsMaterial> {
  return withTimeLimit(clock, server.tls())
}
