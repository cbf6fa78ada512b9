// SPDX-License-Identifier: Apache-2.0
/** The windows that were told last, for readers that come late or come again. Layer: agent/flows (pure). */
import { flowKeyText, type FlowKey, type FlowUpdate, type FlowWindow } from '#lib/flows/flow.ts'

/** Some hundred bytes each. */
export const MOST_UPDATES = 20_000

export class History {
  readonly #node: string
  readonly #most: number
  #sequence: number
  /** in the order of their numbers; by key and window, of which the last one told is the whole */
  readonly #updates = new Map<string, FlowUpdate>()
  /** for each key, what it is called above */
  readonly #names = new WeakMap<FlowKey, string>()

  /** `first`: a number that no agent of this node has told before, as the microseconds since 1970 are. */
  constructor({ node, first, most = MOST_UPDATES }: { readonly node: string; readonly first: number; readonly most?: number }) {
    this.#node = node
    this.#sequence = first
    this.#most = most
  }

  /** With a number each. */
  add(windows: readonly FlowWindow[]): readonly FlowUpdate[] {
    return windows.map((window) => {
      const update = { node: this.#node, sequence: this.#sequence++, window }
      this.#keep(update)
      return update
    })
  }

  #keep(update: FlowUpdate): void {
    const name = `${update.window.start} ${this.#nameOf(update.window.key)}`
    this.#updates.delete(name)
    this.#updates.set(name, update)
    for (const oldest of this.#updates.keys()) {
      if (this.#updates.size <= this.#most) break
      this.#updates.delete(oldest)
    }
  }

  /** What an agent before has told. Before anything else. */
  restore(updates: readonly FlowUpdate[]): void {
    for (const update of updates) this.#keep(update)
    const last = updates.at(-1)
    if (last !== undefined) this.#sequence = Math.max(this.#sequence, last.sequence + 1)
  }

  /** That are still known, from this number on. */
  *since(sequence: number): Iterable<FlowUpdate> {
    for (const update of this.#updates.values()) if (update.sequence >= sequence) yield update
  }

  clear(): void {
    this.#updates.clear()
  }

  #nameOf(key: FlowKey): string {
    const known = this.#names.get(key) ?? flowKeyText(key)
    this.#names.set(key, known)
    return known
  }
}
