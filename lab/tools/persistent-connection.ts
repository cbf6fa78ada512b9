// SPDX-License-Identifier: Apache-2.0
/** A TCP connection to an echo server that stays open between questions. Layer: lab (tool). */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { Endpoint } from './address.ts'
import { within } from '../deadline.ts'
import type { Outcome } from './protocol.ts'
import { parseAnswer } from './results.ts'

export class PersistentConnection {
  readonly #socket: Socket
  #received = ''
  #failed: string | undefined
  #closed = false
  #changed: () => void = () => undefined

  /** `localPort`: any when not given */
  constructor(to: Endpoint, localPort?: number) {
    // the other side may close its half, ours stays
    const options = { host: to.address, port: to.port, noDelay: true, allowHalfOpen: true }
    this.#socket = connect(localPort === undefined ? options : { ...options, localPort }).setEncoding('latin1')
    this.#socket.on('data', (chunk: string) => {
      this.#received += chunk
      this.#changed()
    })
    this.#socket.on('error', (error: NodeJS.ErrnoException) => {
      this.#failed = error.code ?? error.message
      this.#changed()
    })
    this.#socket.on('close', () => {
      this.#closed = true
      this.#changed()
    })
  }

  /** Sends a line and waits for the answer's. */
  async say(text: string, timeoutMs: number): Promise<Outcome> {
    this.#received = ''
    this.#socket.write(`${text}\n`)
    return await this.#wait(timeoutMs, () => {
      const line = this.#received.endsWith('\n') ? this.#received.trimEnd().split('\n').at(-1) : undefined
      const answer = line === undefined ? undefined : parseAnswer(line)
      return answer && { pod: answer.pod, peer: answer.peer, local: answer.local, bytes: answer.bytes }
    })
  }

  /** Sends a line, closes, and waits until the other side has agreed to both. */
  async finish(timeoutMs: number): Promise<Outcome> {
    this.#socket.end('{}\n')
    return await this.#wait(timeoutMs, () => (this.#closed ? { finished: true } : undefined))
  }

  close(): void {
    this.#socket.destroy()
  }

  async #wait(timeoutMs: number, look: () => Outcome | undefined): Promise<Outcome> {
    return await within(timeoutMs, async (late) => {
      const end = once(late, 'abort')
      for (;;) {
        if (this.#failed !== undefined) return { failed: this.#failed }
        const outcome = look() ?? (this.#closed ? { failed: 'ENDED' } : undefined)
        if (outcome !== undefined) return outcome
        if (late.aborted) return { failed: 'TIMEOUT' }
        await Promise.race([end, new Promise<void>((resolve) => (this.#changed = resolve))])
      }
    })
  }
}
