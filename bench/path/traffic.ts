// SPDX-License-Identifier: Apache-2.0
/** The traffic tool as a child process that takes one command after another. Layer: bench. */
import type { ChildProcess } from 'node:child_process'
import { createInterface } from 'node:readline'
import type { Interface } from 'node:readline'
import { InternalError } from '#lib/base/errors.ts'

export type Verb = 'rr' | 'crr' | 'pps' | 'tput'

export interface TrafficCommand {
  readonly verb: Verb
  readonly address: string
  readonly port: number
  readonly ms: number
  readonly clientCpu: number
  readonly serverCpu: number
}

/** Fields that the tool's answers have; a verb's own are numbers, the others undefined. */
export interface Answer {
  readonly p50_ns?: number
  readonly per_second?: number
  readonly bits_per_second?: number
  readonly cpu_ns_per_bit?: number
}

/** `child` runs `traffic drive` with pipes at its input and output. */
export class Traffic {
  readonly #child: ChildProcess
  readonly #lines: Interface
  readonly #answers: AsyncIterator<string>
  readonly #where: string

  constructor(child: ChildProcess, where: string) {
    if (child.stdout === null || child.stdin === null) throw new InternalError('the traffic tool needs pipes')
    this.#child = child
    this.#where = where
    this.#lines = createInterface({ input: child.stdout })
    this.#answers = this.#lines[Symbol.asyncIterator]()
  }

  /** Throws InternalError when the traffic does not come through. */
  async run(command: TrafficCommand): Promise<Answer> {
    const { verb, address, port, ms, clientCpu, serverCpu } = command
    this.#child.stdin?.write(`${verb} ${address} ${port} ${ms} ${clientCpu} ${serverCpu}\n`)
    const line = await this.#answers.next()
    const answer: unknown = line.done === true ? undefined : JSON.parse(line.value)
    if (!isAnswer(answer))
      throw new InternalError(`${this.#where}: ${verb} to ${address}:${port}: ${line.done === true ? 'the tool ended' : line.value}`)
    return answer
  }

  /** Ends with its input. */
  close(): void {
    this.#child.stdin?.end()
    this.#lines.close()
  }
}

function isAnswer(value: unknown): value is Answer {
  return typeof value === 'object' && value !== null && !('error' in value)
}
