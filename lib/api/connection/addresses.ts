// SPDX-License-Identifier: Apache-2.0
/** The addresses of a host, in the order in which they are to be tried. Layer: lib/api. */
import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import type { Clock } from '../../base/clock.ts'
import { unmapped } from '../../base/ip.ts'
import { deepEqual } from '../../base/deep-equal.ts'

export type Resolve = (host: string) => Promise<readonly string[]>

/** All that the machine's own resolver says. */
export const systemResolve: Resolve = async (host) => (await lookup(host, { all: true })).map(({ address }) => address)

/** A resolver that depends on the cluster may be gone with it: after this long the answers from before are used. */
const RESOLVE_MS = 3000

export interface AddressesOptions {
  /** it may be another one each time */
  readonly host: () => string
  readonly clock: Clock
  readonly resolve?: Resolve | undefined
  /** `known` is another list now */
  readonly onChange?: (() => void) | undefined
  /** in [0, 1): so that not all nodes begin with the same one */
  readonly random?: () => number
}

export class Addresses {
  readonly #options: AddressesOptions
  /** when it last failed */
  readonly #failed = new Map<string, number>()
  /** the order among those that never failed */
  readonly #ranks = new Map<string, number>()
  #known: readonly string[] = []
  #host = ''

  constructor(options: AddressesOptions) {
    this.#options = options
  }

  /** Resolves the host again. Those that failed come last, the latest of them at the end. Rejects when nothing is
   * known. */
  async inOrder(signal: AbortSignal): Promise<readonly string[]> {
    const { onChange } = this.#options
    const host = this.#options.host()
    const before = this.#known
    // nothing that was known is of another host
    if (host !== this.#host) this.#known = []
    this.#host = host
    const found = isIP(host) > 0 ? [host] : await this.#resolved(host, signal)
    // the code that keeps services off these addresses knows one form of IPv4; sockets take either
    this.#known = [...new Set(found.map(unmapped))]
    if (!deepEqual(before.toSorted(), this.#known.toSorted())) onChange?.()
    // a balancer's name may have others each day
    for (const addresses of [this.#failed, this.#ranks])
      for (const address of addresses.keys()) if (!this.#known.includes(address)) addresses.delete(address)
    return this.#known.toSorted((a, b) => this.#failedAt(a) - this.#failedAt(b) || this.#rank(a) - this.#rank(b))
  }

  failed(address: string): void {
    this.#failed.set(address, this.#options.clock.now())
  }

  works(address: string): void {
    this.#failed.delete(address)
  }

  /** All that was known last. */
  get known(): readonly string[] {
    return this.#known
  }

  async #resolved(host: string, signal: AbortSignal): Promise<readonly string[]> {
    const { clock, resolve = systemResolve } = this.#options
    const over = new AbortController()
    const resolved = resolve(host)
    if (this.#known.length === 0) return await resolved
    try {
      const late = clock.sleep(RESOLVE_MS, AbortSignal.any([signal, over.signal])).then(() => this.#known)
      // once one of them is there, no caller waits for the other: it may fail unseen
      for (const promise of [resolved, late]) promise.catch(() => undefined)
      const answer = await Promise.race([resolved, late])
      return answer.length > 0 ? answer : this.#known
    } catch {
      signal.throwIfAborted()
      return this.#known
    } finally {
      over.abort()
    }
  }

  #failedAt(address: string): number {
    return this.#failed.get(address) ?? -Infinity
  }

  #rank(address: string): number {
    const { random = Math.random } = this.#options
    const rank = this.#ranks.get(address) ?? random()
    this.#ranks.set(address, rank)
    return rank
  }
}
