// SPDX-License-Identifier: Apache-2.0
/** The one way in which programs of ours listen: every connection passes a guard. Layer: lib/base. */
import { once } from 'node:events'
import { mkdirSync, rmSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { dirname } from 'node:path'
import type { Guard, Guest } from './guard.ts'

export interface Place {
  /** undefined: every address of this machine, of both families */
  readonly host: string | undefined
  /** 0: any free one */
  readonly port: number
}

export interface GuardedServerOptions {
  readonly guard: Guard
  readonly serve: (guest: Guest) => void
  /** a client that says that it has said everything still gets its answer; false unless given */
  readonly allowHalfOpen?: boolean
  /** what goes wrong while it listens */
  readonly onError?: (error: Error) => void
}

/** Connections that the kernel keeps until this process takes them, of a burst: what is beyond asks again a second
 * later. The node's limit (net.core.somaxconn) holds as well. */
const BACKLOG = 4096

/** Listens until it is disposed of; connections die with it. */
export class GuardedServer implements AsyncDisposable {
  readonly #server: Server
  readonly #open = new Set<Socket>()

  constructor({ guard, serve, allowHalfOpen = false, onError }: GuardedServerOptions) {
    this.#server = createServer({ allowHalfOpen, noDelay: true }, (socket) => {
      this.#open.add(socket)
      socket.once('close', () => this.#open.delete(socket))
      guard.admit(socket, serve)
    })
    this.#server.on('error', (error) => {
      // until then it is told by a rejection
      if (this.#server.listening) onError?.(error)
    })
  }

  get isListening(): boolean {
    return this.#server.listening
  }

  /** Resolves with the port; rejects with Node's error (EADDRINUSE). */
  async listenAt({ host, port }: Place): Promise<number> {
    await this.#listening(() => this.#server.listen({ ...(host === undefined ? {} : { host }), port, backlog: BACKLOG }))
    const address = this.#server.address()
    return typeof address === 'object' && address !== null ? address.port : 0
  }

  /** On a socket that root alone may ask, in the place of one that another process has left there. Rejects when there
   * is no such place. */
  async listenForRoot(path: string): Promise<void> {
    mkdirSync(dirname(path), { recursive: true })
    rmSync(path, { force: true })
    await this.#listening(() => {
      const mask = process.umask(0o177)
      try {
        this.#server.listen({ path, backlog: BACKLOG })
      } finally {
        process.umask(mask)
      }
    })
  }

  /** Takes no more connections; those that are there stay. */
  stopListening(): void {
    this.#server.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => {
        resolve()
      })
      for (const socket of this.#open) socket.destroy()
    })
  }

  async #listening(begin: () => void): Promise<void> {
    const listening = once(this.#server, 'listening')
    begin()
    await listening
  }
}
