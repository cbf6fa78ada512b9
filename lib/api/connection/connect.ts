// SPDX-License-Identifier: Apache-2.0
/** One connection to one address of an API server, ready to be spoken on. Layer: lib/api. */
import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { checkServerIdentity, connect as connectTls, type TLSSocket } from 'node:tls'
import type { Clock } from '../../base/clock.ts'
import { UnreachableError } from '../errors.ts'
import type { ApiServer, TlsMaterial } from './server.ts'

/** TCP and TLS together: a server that has stopped still takes connections, but does not speak. */
const CONNECT_MS = 5000
/** A peer that is gone without a word is noticed ten seconds after this. */
const KEEP_ALIVE_MS = 10_000

export interface ConnectOptions {
  readonly server: ApiServer
  /** what the server is asked with and judged by */
  readonly tls: TlsMaterial
  readonly address: string
  readonly clock: Clock
  readonly beforeConnect?: ((address: string, port: number) => void) | undefined
  readonly signal: AbortSignal
}

/** Rejects with UnreachableError, or with the signal's reason. */
export async function connectTo({ server, tls, address, clock, beforeConnect, signal }: ConnectOptions): Promise<Socket> {
  signal.throwIfAborted()
  beforeConnect?.(address, server.port)
  const socket = server.protocol === 'http:' ? connectTcp(server.port, address) : openTls(server, { address, ...tls })
  socket.setNoDelay(true).setKeepAlive(true, KEEP_ALIVE_MS)
  const { promise, resolve, reject } = Promise.withResolvers<Socket>()
  const onAbort = (): void => {
    reject(signal.reason)
  }
  const cancel = clock.after(CONNECT_MS, () => {
    // as the kernel calls it, which is more patient
    reject(Object.assign(new Error(`no answer in ${CONNECT_MS} ms`), { code: 'ETIMEDOUT' }))
  })
  signal.addEventListener('abort', onAbort)
  socket.once(server.protocol === 'http:' ? 'connect' : 'secureConnect', () => {
    resolve(socket)
  })
  socket.once('error', reject)
  socket.once('close', () => {
    reject(new Error('the connection was closed'))
  })
  try {
    return await promise
  } catch (thrown) {
    socket.on('error', () => undefined).destroy()
    if (signal.aborted) throw thrown
    throw new UnreachableError(`${address} port ${server.port}`, thrown)
  } finally {
    cancel()
    signal.removeEventListener('abort', onAbort)
  }
}

/** What its certificate says is compared with the name it was asked for by, not with the address. */
function openTls(server: ApiServer, { address, ca, cert, key }: TlsMaterial & { readonly address: string }): TLSSocket {
  const name = server.servername ?? server.host
  return connectTls({
    host: address,
    port: server.port,
    ALPNProtocols: ['h2', 'http/1.1'],
    ...(isIP(name) > 0 ? {} : { servername: name }),
    checkServerIdentity: (_, certificate) => checkServerIdentity(name, certificate),
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
  })
}
