// SPDX-License-Identifier: Apache-2.0
/** Whether the endpoint that agents use still answers, where the operator itself is not served by it.
 * Layer: operator. */
import type { Clock } from '#lib/base/clock.ts'
import { originOf, type ApiServer } from '#lib/api/connection/server.ts'
import type { Endpoint } from '#lib/render/input.ts'

export interface EndpointWatchOptions {
  readonly clock: Clock
  /** undefined: what this process may ask at says nothing of pods */
  readonly at: ((endpoint: Endpoint) => ApiServer) | undefined
  /** "https://10.0.0.1:6443", of the operator's own connection */
  readonly origin: () => string
  /** why it does not answer; undefined: it does */
  readonly ask: (server: ApiServer, signal: AbortSignal) => Promise<string | undefined>
  /** `silent` is another by now */
  readonly onChange: () => void
}

const AGAIN_MS = 5000
/** One answer may be lost. */
const TIMES = 2

export class EndpointWatch {
  readonly #of: EndpointWatchOptions
  #used: Endpoint | undefined
  /** in a row */
  #failures = 0
  #silent: string | undefined

  constructor(of: EndpointWatchOptions) {
    this.#of = of
  }

  /** Why the endpoint in use does not answer; undefined: it does, or that is not known. */
  get silent(): string | undefined {
    return this.#silent
  }

  /** By which agents ask from now on; undefined: the service's address. */
  use(endpoint: Endpoint | undefined): void {
    if (endpoint?.host === this.#used?.host && endpoint?.port === this.#used?.port) return
    this.#used = endpoint
    this.#failures = 0
    this.#silent = undefined
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#of
    const isOver = (): boolean => signal.aborted
    while (!isOver()) {
      await this.#look(signal).catch((thrown: unknown) => {
        if (!isOver()) throw thrown
      })
      await clock.sleep(AGAIN_MS, signal).catch(() => undefined)
    }
  }

  async #look(signal: AbortSignal): Promise<void> {
    const { at, origin, ask, onChange } = this.#of
    const asked = this.#used
    if (at === undefined || asked === undefined) return
    const server = at(asked)
    const why = originOf(server) === origin() ? undefined : await ask(server, signal)
    if (this.#used !== asked) return
    this.#failures = why === undefined ? 0 : this.#failures + 1
    const before = this.#silent
    if (why === undefined) this.#silent = undefined
    else if (this.#failures >= TIMES) this.#silent ??= why
    if (this.#silent !== before) onChange()
  }
}
