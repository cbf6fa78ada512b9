// SPDX-License-Identifier: Apache-2.0
/** The socket on which the shim asks: one line in, one answer out. Layer: agent/cni. */
import { chmodSync, existsSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { listenForRoot } from '#lib/base/os/listen.ts'
import type { Answer } from './plugin.ts'

export interface CniServerOptions {
  readonly path: string
  readonly call: (line: string) => Promise<Answer>
}

/** A network configuration has a few kilobytes. */
const LONGEST_LINE = 1 << 20
const LINE_MS = 10_000

export class CniServer implements AsyncDisposable {
  readonly #options: CniServerOptions
  #server: Server | undefined
  readonly #open = new Set<Socket>()
  readonly #calls = new Set<Promise<void>>()

  constructor(options: CniServerOptions) {
    this.#options = options
  }

  /** True while shims can find the socket: another process may remove its file. */
  get isThere(): boolean {
    return this.#server?.listening === true && existsSync(this.#options.path)
  }

  /** Only root may ask. Rejects when there is no such place. Calls that an earlier socket has brought are answered
   * all the same. */
  async start(): Promise<void> {
    const { path } = this.#options
    this.#server?.close()
    // the shim says that it has said everything, and then waits
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      this.#accept(socket)
    })
    this.#server = server
    // this node has one agent, so the agent that listened here is gone
    await listenForRoot(server, path)
    chmodSync(path, 0o600)
  }

  /** Answers what it has been asked: half a call would leave half a pod. */
  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise((resolve) => (this.#server === undefined ? resolve(undefined) : this.#server.close(resolve)))
    while (this.#calls.size > 0) await Promise.all(this.#calls)
    for (const socket of this.#open) socket.destroy()
    await closed
  }

  #accept(socket: Socket): void {
    this.#open.add(socket)
    const parts: Buffer[] = []
    let size = 0
    const take = (part: Buffer): void => {
      parts.push(part)
      size += part.length
      if (size > LONGEST_LINE) socket.destroy()
      else if (part.includes(NEWLINE)) done()
    }
    const done = (): void => {
      socket.off('data', take).off('end', done).setTimeout(0).resume()
      const text = Buffer.concat(parts).toString()
      const answered = this.#answer(socket, text.slice(0, text.includes('\n') ? text.indexOf('\n') : undefined))
      this.#calls.add(answered)
      void answered.finally(() => this.#calls.delete(answered))
    }
    socket
      .setTimeout(LINE_MS, () => socket.destroy())
      // the caller has gone: its call is finished all the same, and the runtime repeats it or takes it back
      .on('error', () => socket.destroy())
      .on('close', () => this.#open.delete(socket))
      .on('data', take)
      .on('end', done)
  }

  async #answer(socket: Socket, line: string): Promise<void> {
    const { status, output } = await this.#options.call(line)
    if (!socket.destroyed) socket.end(`${status}${output}`)
  }
}

const NEWLINE = 10
