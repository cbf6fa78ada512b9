// SPDX-License-Identifier: Apache-2.0
/** One request from a socket of its own to an echo server. Layer: lab (tool). */
import { createSocket } from 'node:dgram'
import { connect } from 'node:net'
import type { Endpoint } from './address.ts'
import { deadline } from '../deadline.ts'

export interface Exchange {
  readonly to: Endpoint
  /** ends with a line feed */
  readonly request: string
  readonly timeoutMs: number
  /** any when not given */
  readonly localPort?: number | undefined
}

/** The answer's line, or a code: an error's, "TIMEOUT", "ENDED" */
export type Ending = { readonly line: string } | { readonly code: string }

export function exchange(what: Exchange): Promise<Ending> {
  return what.to.proto === 'tcp' ? exchangeTcp(what) : exchangeUdp(what)
}

function exchangeTcp({ to, request, timeoutMs, localPort }: Exchange): Promise<Ending> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    const socket = connect({ host: to.address, port: to.port, noDelay: true, ...(localPort === undefined ? {} : { localPort }) })
    const settle = (ending: Ending): void => {
      cancel()
      socket.destroy()
      resolve(ending)
    }
    const cancel = deadline(timeoutMs, () => {
      settle({ code: 'TIMEOUT' })
    })
    socket.on('connect', () => socket.write(request))
    socket.on('error', (error: NodeJS.ErrnoException) => {
      settle({ code: error.code ?? error.message })
    })
    socket.on('end', () => {
      settle({ code: 'ENDED' })
    })
    socket.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      if (chunk.at(-1) === 10) settle({ line: Buffer.concat(chunks).toString('latin1') })
    })
  })
}

function exchangeUdp({ to, request, timeoutMs, localPort }: Exchange): Promise<Ending> {
  return new Promise((resolve) => {
    const socket = createSocket({ type: to.address.includes(':') ? 'udp6' : 'udp4' })
    const settle = (ending: Ending): void => {
      cancel()
      socket.removeAllListeners().on('error', () => undefined)
      socket.close()
      resolve(ending)
    }
    const failed = (error: NodeJS.ErrnoException | null): void => {
      if (error !== null) settle({ code: error.code ?? error.message })
    }
    const cancel = deadline(timeoutMs, () => {
      settle({ code: 'TIMEOUT' })
    })
    const ask = (): void => {
      socket.connect(to.port, to.address, () => {
        socket.send(request, failed)
      })
    }
    socket.on('error', failed)
    socket.on('message', (bytes) => {
      settle({ line: bytes.toString('latin1') })
    })
    if (localPort === undefined) ask()
    else socket.bind(localPort, ask)
  })
}
