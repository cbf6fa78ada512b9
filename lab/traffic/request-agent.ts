// SPDX-License-Identifier: Apache-2.0
/** Many questions from one place of a lab, by one process that stays there. Layer: lab. */
import type { ChildProcess } from 'node:child_process'
import { createInterface } from 'node:readline'
import { LabError } from '../errors.ts'
import type { Lab } from '../lab.ts'
import { toolCommand } from '../paths.ts'
import { isReply, type Order, type Outcome } from '../tools/protocol.ts'

type WithoutId<T> = T extends unknown ? Omit<T, 'id'> : never

export class RequestAgent {
  readonly #place: string
  readonly #child: ChildProcess
  readonly #waiting = new Map<number, PromiseWithResolvers<readonly Outcome[]>>()
  #last = 0
  #stderr = ''
  #ended = false

  constructor(lab: Lab, place: string) {
    this.#place = place
    this.#child = lab.spawn(place, toolCommand('request-agent'), ['pipe', 'pipe', 'pipe'])
    this.#child.stderr?.on('data', (chunk: Buffer) => (this.#stderr += chunk.toString()))
    if (this.#child.stdout !== null) createInterface({ input: this.#child.stdout }).on('line', (line) => this.#receive(line))
    // what could not be written any more is answered by the end of the tool
    this.#child.stdin?.on('error', () => undefined)
    this.#child.on('error', () => this.#end())
    this.#child.on('close', () => this.#end())
  }

  /** Resolves when it is done; throws LabError when the tool ends instead. */
  async order(order: WithoutId<Order>): Promise<readonly Outcome[]> {
    if (this.#ended) throw this.#error()
    const id = ++this.#last
    const waiting = Promise.withResolvers<readonly Outcome[]>()
    this.#waiting.set(id, waiting)
    this.#child.stdin?.write(`${JSON.stringify({ id, ...order })}\n`)
    return await waiting.promise
  }

  /** Ends it; from now on every order is refused. */
  close(): void {
    this.#ended = true
    this.#child.stdin?.end()
  }

  #receive(line: string): void {
    const reply: unknown = JSON.parse(line)
    if (!isReply(reply)) throw new LabError(`questions from ${this.#place}`, `not a reply: ${line}`)
    this.#waiting.get(reply.id)?.resolve(reply.outcomes)
    this.#waiting.delete(reply.id)
  }

  #end(): void {
    this.#ended = true
    for (const waiting of this.#waiting.values()) waiting.reject(this.#error())
    this.#waiting.clear()
  }

  #error(): LabError {
    return new LabError(`questions from ${this.#place}`, `the tool ended: ${this.#stderr.trim()}`)
  }
}
