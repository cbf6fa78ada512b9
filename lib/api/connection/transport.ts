// SPDX-License-Identifier: Apache-2.0
/** HTTP with an API server that may have several addresses: goes to the next one when a connection dies or hangs.
 * Layer: lib/api. */
import type { Readable } from 'node:stream'
import { packageVersion } from '../../base/os/package.ts'
import { backoffMs, type Backoff } from '../../base/backoff.ts'
import { systemClock, type Clock } from '../../base/clock.ts'
import { errorText } from '../../base/errors.ts'
import { deepEqual } from '../../base/deep-equal.ts'
import { Addresses, type Resolve } from './addresses.ts'
import { UnreachableError } from '../errors.ts'
import { withTimeLimit } from './time-limit.ts'
import { originOf, placeOf, type ApiServer } from './server.ts'
import { Session } from './session.ts'

export interface TransportOptions {
  readonly server: ApiServer
  readonly clock?: Clock | undefined
  readonly resolve?: Resolve | undefined
  /** `addresses` are others now */
  readonly onAddresses?: (() => void) | undefined
  /** before each connection: what is in its way is to go now */
  readonly beforeConnect?: ((address: string, port: number) => void) | undefined
  /** of credentials that are read again: the server has refused them, or why they cannot be read */
  readonly onCredentials?: ((state: 'refused' | 'unreadable', reason: string) => void) | undefined
  /** how often the server is asked whether it is there, and after how long without an answer it is taken for gone */
  readonly pingMs?: number | undefined
  readonly silentMs?: number | undefined
}

export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** with its query */
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** ends the answer too */
  readonly signal: AbortSignal
}

export interface HttpResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: Readable
}

/** What was asked, with whose credentials, and by which connection. */
interface Sent {
  readonly session: Session
  readonly credentials: Readonly<Record<string, string>>
  readonly response: HttpResponse
}

export class Transport implements AsyncDisposable {
  readonly #server: ApiServer
  readonly #options: TransportOptions
  readonly #clock: Clock
  readonly #addresses: Addresses
  readonly #closed = new AbortController()
  #opening: Promise<Session> | undefined
  #session: Session | undefined
  /** in a row */
  #refusals = 0
  #renewAt = -Infinity
  #renewing: Promise<void> = Promise.resolve()
  #unread: string | undefined

  constructor(options: TransportOptions) {
    this.#options = options
    this.#server = options.server
    this.#clock = options.clock ?? systemClock
    const { server, resolve, onAddresses } = options
    this.#addresses = new Addresses({ host: () => server.host, clock: this.#clock, resolve, onChange: onAddresses })
  }

  /** Resolves when the answer begins. Rejects with UnreachableError, or with the signal's reason. A server that no
   * longer takes our credentials is asked once more when there are others. */
  async request(request: HttpRequest): Promise<HttpResponse> {
    const sent = await this.#send(request)
    if (sent.response.status !== 401) this.#taken()
    else if (await this.#hasOthers(sent)) {
      // no caller reads this response
      sent.response.body.on('error', () => undefined).destroy()
      return (await this.#send(request)).response
    }
    return sent.response
  }

  /** Makes sure that there is a connection. Rejects with UnreachableError, or with the signal's reason. */
  async connect(signal: AbortSignal): Promise<void> {
    await this.#open(signal)
  }

  /** What is spoken with the address that answers at present. */
  get connected(): Pick<Session, 'address' | 'protocol' | 'localAddress'> | undefined {
    return this.#session
  }

  /** "https://api.example:6443" */
  get origin(): string {
    return originOf(this.#server)
  }

  /** All addresses that the host had when it was last looked up. */
  get addresses(): readonly string[] {
    return this.#addresses.known
  }

  /** Lets go of the connection; the next request makes another one, to another address where there is one. */
  async drop(reason: UnreachableError): Promise<void> {
    await this.#session?.end(reason)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed.abort(new UnreachableError('the client is closed'))
    this.#server[Symbol.dispose]?.()
    await this.#opening?.catch(() => undefined)
    await this.#session?.end(new UnreachableError('the client is closed'))
  }

  async #send({ method, path, headers, body, signal }: HttpRequest): Promise<Sent> {
    const session = await this.#open(signal)
    try {
      const credentials = await orAborted(withTimeLimit(this.#clock, this.#server.headers()), signal)
      const sent = session.request({
        method,
        path: `${this.#server.prefix}${path}`,
        headers: { ...headers, 'user-agent': USER_AGENT, ...credentials },
        signal,
        ...(body === undefined ? {} : { body }),
      })
      // undici hears the signal only when it has a stream for the request
      const answer = await orAborted(sent, signal)
      return { session, credentials, response: { status: answer.statusCode, headers: answer.headers, body: answer.body } }
    } catch (thrown) {
      signal.throwIfAborted()
      throw new UnreachableError(`${method} ${path}`, thrown)
    }
  }

  /** Credentials that the server accepts only at times are not read more often for that. */
  #taken(): void {
    if (this.#refusals > 0 && this.#clock.now() > this.#renewAt + RENEW.maxMs) this.#refusals = 0
  }

  /** After a refusal: are there others by now than those that were sent? A client certificate
   * identifies us for as long as the connection lasts. */
  async #hasOthers({ session, credentials }: Sent): Promise<boolean> {
    if (this.#clock.now() >= this.#renewAt) {
      this.#renewAt = this.#clock.now() + backoffMs(RENEW, this.#refusals++, Math.random())
      this.#options.onCredentials?.('refused', `${this.origin} has refused them (HTTP 401)`)
      this.#renewing = this.#renew(true)
    }
    await this.#renewing
    if (!(await session.isOutdated()))
      return await withTimeLimit(this.#clock, this.#server.headers()).then(
        (headers) => !deepEqual(headers, credentials),
        (thrown: unknown) => this.#unreadable(thrown),
      )
    await session.end(new UnreachableError(OUTDATED))
    return true
  }

  /** Never rejects. */
  async #renew(refused: boolean): Promise<void> {
    const place = placeOf(this.#server)
    try {
      await withTimeLimit(this.#clock, this.#server.renew?.(refused) ?? Promise.resolve())
      this.#unread = undefined
    } catch (thrown) {
      this.#unreadable(thrown)
    }
    if (placeOf(this.#server) !== place) this.#options.onAddresses?.()
  }

  /** The same reason is reported once. */
  #unreadable(thrown: unknown): false {
    const reason = errorText(thrown)
    if (reason !== this.#unread) this.#options.onCredentials?.('unreadable', reason)
    this.#unread = reason
    return false
  }

  /** One attempt for all callers that wait. */
  async #open(signal: AbortSignal): Promise<Session> {
    signal.throwIfAborted()
    if (this.#session !== undefined) return this.#session
    this.#opening ??= this.#openFirst().finally(() => {
      this.#opening = undefined
    })
    return await orAborted(this.#opening, signal)
  }

  async #openFirst(): Promise<Session> {
    const { signal } = this.#closed
    const failures: string[] = []
    let last: unknown
    await this.#renew(false)
    for (const address of await this.#inOrder(signal)) {
      try {
        const session = await Session.open({ ...this.#options, clock: this.#clock, address, onEnd: () => this.#ended(address) }, signal)
        this.#addresses.works(address)
        this.#session = session
        return session
      } catch (thrown) {
        signal.throwIfAborted()
        this.#addresses.failed(address)
        failures.push(errorText(thrown))
        last = thrown
      }
    }
    const { byService } = this.#server
    if (failures.length === 1 && byService === undefined)
      throw last instanceof UnreachableError ? last : new UnreachableError(this.origin, last)
    const reasons = [...(failures.length === 0 ? ['has no address'] : failures), ...(byService === undefined ? [] : [byService])]
    throw new UnreachableError(`${this.origin}: ${reasons.join('; ')}`)
  }

  #ended(address: string): void {
    this.#addresses.failed(address)
    if (this.#session?.address === address) this.#session = undefined
  }

  async #inOrder(signal: AbortSignal): Promise<readonly string[]> {
    try {
      return await this.#addresses.inOrder(signal)
    } catch (thrown) {
      signal.throwIfAborted()
      throw new UnreachableError(this.origin, thrown)
    }
  }
}

const OUTDATED = 'certificates are others by now, or the server is'
/** Between two readings of credentials that the server goes on to refuse. */
const RENEW: Backoff = { firstMs: 1000, maxMs: 60_000 }
const USER_AGENT = `netplane/${packageVersion()}`

/** Rejects with the signal's reason as soon as it aborts; the promise goes on unheard. */
async function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  const onAbort = (): void => {
    reject(signal.reason)
  }
  signal.addEventListener('abort', onAbort, { once: true })
  if (signal.aborted) onAbort()
  try {
    return await Promise.race([aborted, promise])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}
