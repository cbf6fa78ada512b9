// SPDX-License-Identifier: Apache-2.0
/** Flows as the node's agent tells them on its socket. Layer: cli. */
import { get, type ClientRequest, type IncomingMessage } from 'node:http'
import { ConfigError, errorText } from '#lib/base/errors.ts'
import type { FlowUpdate } from '#lib/flows/flow.ts'

/** Until it is disposed of, or the agent ends. */
export class AgentFlows implements Disposable {
  readonly #request: ClientRequest
  #came: FlowUpdate[] = []
  /** of a line that has not come whole */
  #rest = ''
  #hasEnded = false
  #wake: () => void = () => undefined

  private constructor(request: ClientRequest, response: IncomingMessage) {
    this.#request = request
    response
      .setEncoding('utf8')
      .on('data', (text: string) => {
        this.#take(text)
      })
      // an agent that ends cuts it off
      .on('error', () => undefined)
      .on('close', () => {
        this.#hasEnded = true
        this.#wake()
      })
  }

  /** What has this number, or a higher one. Rejects with what to do when no agent answers. */
  static open(socket: string, since = 0): Promise<AgentFlows> {
    return new Promise((resolve, reject) => {
      const request = get({ socketPath: socket, path: `/flows?since=${since}` }, (response) => {
        if (response.statusCode === 200) resolve(new AgentFlows(request, response))
        else reject(new ConfigError('--socket', `${socket} answers with status ${response.statusCode ?? 0}`))
      })
      request.on('error', (thrown) => {
        reject(new ConfigError('--socket', `no agent tells flows at ${socket} (run it on the node, as root): ${errorText(thrown)}`, thrown))
      })
    })
  }

  /** What comes within this time. */
  async within(ms: number): Promise<readonly FlowUpdate[]> {
    await new Promise((resolve) => setTimeout(resolve, ms))
    return this.#taken()
  }

  /** What has come since, as soon as there is some; undefined: the agent has ended. */
  async next(): Promise<readonly FlowUpdate[] | undefined> {
    while (this.#came.length === 0) {
      if (this.#hasEnded) return undefined
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
    return this.#taken()
  }

  #take(text: string): void {
    const lines = (this.#rest + text).split('\n')
    this.#rest = lines.pop() ?? ''
    this.#came.push(...lines.map((line) => JSON.parse(line) as FlowUpdate))
    this.#wake()
  }

  #taken(): readonly FlowUpdate[] {
    const came = this.#came
    this.#came = []
    return came
  }

  [Symbol.dispose](): void {
    this.#request.destroy()
  }
}
