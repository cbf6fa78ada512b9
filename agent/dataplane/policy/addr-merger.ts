// SPDX-License-Identifier: Apache-2.0
/** Rows of np_addrs: what an address is, and which identity policy gives it. Either may be all that is known.
 * Layer: agent/dataplane (pure data structure). */
import { ADDR_LOCAL_POD } from '#lib/base/bpf-constants.ts'
import type { AddrInfo } from '#agent/maps/shapes.ts'
import type { Codec } from '#agent/maps/codec.ts'
import { decodeText, textWriter } from '#agent/maps/byte-rows.ts'
import type { WantedRow } from '../maps/key-owners.ts'
import { NO_RULES } from '../maps/encode-rows.ts'

export interface AddrMergerOptions {
  readonly rows: WantedRow
  readonly value: Codec<AddrInfo>
  /** what the kernel has at the key, as far as is known */
  readonly actual: (key: string) => string | undefined
}

/** Both halves are whole values, with zeros where the other half speaks. A local pod without its rules would be open to
 * every sender. So its half waits until the announced rows are here, and the address keeps its row from before. */
export class AddrMerger implements WantedRow {
  readonly #rows: WantedRow
  readonly #value: Codec<AddrInfo>
  readonly #actual: AddrMergerOptions['actual']
  /** by key: what is known of the address, but for pods that wait */
  readonly #places = new Map<string, string>()
  readonly #rules = new Map<string, string>()
  readonly #waiting = new Map<string, string>()
  /** by key: how many more rows of policy are to come */
  readonly #announced = new Map<string, number>()

  /** `actual`: rows that are in the kernel */
  constructor({ rows, value, actual }: AddrMergerOptions) {
    this.#rows = rows
    this.#value = value
    this.#actual = actual
  }

  /** Keys of pods that wait for their rules. */
  get waiting(): number {
    return this.#waiting.size
  }

  isWaiting(key: string): boolean {
    return this.#waiting.has(key)
  }

  /** Keys of which policy has said something. */
  get ruled(): Iterable<string> {
    return this.#rules.keys()
  }

  want(key: string, value: string): void {
    if (this.#mustWait(key, value)) {
      this.#waiting.set(key, value)
      return
    }
    this.#waiting.delete(key)
    this.#places.set(key, value)
    this.#show(key)
  }

  unwant(key: string): void {
    this.#waiting.delete(key)
    if (this.#places.delete(key)) this.#show(key)
  }

  wanted(key: string): string | undefined {
    return this.#waiting.get(key) ?? this.#places.get(key)
  }

  /** A row of policy for this address is on its way. */
  announce(key: string): void {
    this.#announced.set(key, (this.#announced.get(key) ?? 0) + 1)
  }

  /** One that was announced is not to come after all. */
  withdraw(key: string): void {
    const left = (this.#announced.get(key) ?? 0) - 1
    if (left > 0) this.#announced.set(key, left)
    else this.#announced.delete(key)
  }

  isAnnounced(key: string): boolean {
    return this.#announced.has(key)
  }

  /** Nothing is on its way any more. */
  forgetAnnounced(): void {
    this.#announced.clear()
  }

  /** What was announced has come; undefined: policy knows the address no longer. */
  rule(key: string, value: string | undefined): void {
    this.withdraw(key)
    if (value === undefined) this.#rules.delete(key)
    else this.#rules.set(key, value)
    const waiting = this.#waiting.get(key)
    if (waiting !== undefined && !this.#mustWait(key, waiting)) {
      this.#waiting.delete(key)
      this.#places.set(key, waiting)
    }
    this.#show(key)
  }

  #mustWait(key: string, value: string): boolean {
    if (this.#places.get(key) === value || decodeText(this.#value, value).kind !== ADDR_LOCAL_POD) return false
    return this.#announced.has(key) || !this.#rules.has(key)
  }

  /** A pod that waits keeps the place that an agent before us gave it. */
  #placeInKernel(key: string): string | undefined {
    const actual = this.#waiting.has(key) ? this.#actual(key) : undefined
    if (actual === undefined) return undefined
    const { kind, flags, ifindex } = decodeText(this.#value, actual)
    return kind === ADDR_LOCAL_POD ? textWriter(this.#value)({ kind, flags, ifindex, ...NO_RULES }) : undefined
  }

  #show(key: string): void {
    const [place, rules] = [this.#places.get(key) ?? this.#placeInKernel(key), this.#rules.get(key)]
    const value = place === undefined || rules === undefined ? (place ?? rules) : both(place, rules)
    if (value === undefined) this.#rows.unwant(key)
    else this.#rows.want(key, value)
  }
}

/** Where one has zeros the other's byte. */
function both(a: string, b: string): string {
  const bytes = Buffer.from(a, 'latin1')
  for (let at = 0; at < bytes.length; at++) bytes[at] = (bytes[at] ?? 0) | b.charCodeAt(at)
  return bytes.toString('latin1')
}
