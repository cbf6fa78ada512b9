// SPDX-License-Identifier: Apache-2.0
/** The socket on which the shim asks: one line in, one answer out. Layer: agent/cni. */
import { chmodSync, existsSync } from 'node:fs'
import { Guard, type Guest } from '#lib/base/os/guard.ts'
import { GuardedServer } from '#lib/base/os/guarded-server.ts'
import type { Answer } from './plugin.ts'

export interface CniServerOptions {
  readonly path: string
  readonly call: (line: string) => Promise<Answer>
}

/** A network configuration has a few kilobytes. */
const LONGEST_LINE = 1 << 20
/** Root alone may ask. A node that starts a hundred pods at once is slow to run their shims. */
const LIMITS = { most: 1024, perPeer: 1024, perSecond: 1000, sayMs: 10_000 }

export class CniServer implements AsyncDisposable {
  readonly #options: CniServerOptions
  readonly #guard = new Guard(LIMITS)
  /** the last is the one that listens */
  readonly #servers: GuardedServer[] = []
  readonly #calls = new Set<Promise<void>>()

  constructor(options: CniServerOptions) {
    this.#options = options
  }

  /** True while shims can find the socket: another process may remove its file. */
  get isThere(): boolean {
    return this.#servers.at(-1)?.isListening === true && existsSync(this.#options.path)
  }

  /** Only root may ask. Rejects when there is no such place. Calls that an earlier socket has brought are answered
   * all the same. */
  async start(): Promise<void> {
    const { path } = this.#options
    this.#servers.at(-1)?.stopListening()
    const serve = (guest: Guest): void => {
      this.#serve(guest)
    }
    // the shim says that it has said everything, and then waits
    const server = new GuardedServer({ guard: this.#guard, serve, allowHalfOpen: true })
    this.#servers.push(server)
    // this node has one agent, so the agent that listened here is gone
    await server.listenForRoot(path)
    chmodSync(path, 0o600)
  }

  /** Answers what it has been asked: half a call would leave half a pod. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const server of this.#servers) server.stopListening()
    while (this.#calls.size > 0) await Promise.all(this.#calls)
    await Promise.all(this.#servers.map((server) => server[Symbol.asyncDispose]()))
  }

  #serve({ socket, busy }: Guest): void {
    const parts: Buffer[] = []
    let size = 0
    const take = (part: Buffer): void => {
      parts.push(part)
      size += part.length
      if (size > LONGEST_LINE) socket.destroy()
      else if (part.includes(NEWLINE)) done()
    }
    const done = (): void => {
      // if the caller goes, its call is finished all the same, and the runtime repeats it or takes it back
      busy()
      socket.off('data', take).off('end', done).resume()
      const text = Buffer.concat(parts).toString()
      const answered = this.#answer(socket, text.slice(0, text.includes('\n') ? text.indexOf('\n') : undefined))
      this.#calls.add(answered)
      void answered.finally(() => this.#calls.delete(answered))
    }
    socket.on('data', take).on('end', done)
  }

  async #answer(socket: Guest['socket'], line: string): Promise<void> {
    const { status, output } = await this.#options.call(line)
    if (!socket.destroyed) socket.end(`${status}${output}`)
  }
}

const NEWLINE = 10
