// SPDX-License-Identifier: Apache-2.0
/** Where in a YAML text something is, from the parser's own events. Used only to place an error.
 * Layer: lib/manifests. */
import { EVENT_ID, getScalarValue, parseEvents } from 'js-yaml'
import type { Event } from 'js-yaml'
import type { Step } from './path.ts'

/** A YAML text taken apart once, to be asked for several places. */
export class YamlPlaces {
  readonly #text: string
  readonly #events: readonly Event[]

  /** The text must be valid: throws what the parser throws. */
  constructor(text: string) {
    this.#text = text
    this.#events = parseEvents(text, {})
  }

  /** Offset of what `path` leads to in the n-th document (of the field's name where the last step is one), or of the
   * deepest part of the way that is there. Merged and aliased parts are not followed. */
  locate(document: number, path: readonly Step[]): number {
    let seen = -1
    for (const [at, event] of this.#events.entries()) {
      if (event.type === EVENT_ID.DOCUMENT && ++seen === document) return this.#follow(at + 1, path, 0)
    }
    return 0
  }

  #follow(at: number, path: readonly Step[], fallback: number): number {
    const event = this.#events[at]
    const found = fallback > 0 ? fallback : Math.max(fallback, startOf(event))
    const [step, ...rest] = path
    if (event?.type === EVENT_ID.MAPPING && typeof step === 'string') {
      for (let key = at + 1; this.#isNode(key); key = this.#after(this.#after(key))) {
        const name = this.#events[key]
        if (name?.type === EVENT_ID.SCALAR && getScalarValue(this.#text, name) === step)
          return this.#follow(this.#after(key), rest, name.valueStart)
      }
    }
    if (event?.type === EVENT_ID.SEQUENCE && typeof step === 'number') {
      let index = 0
      for (let item = at + 1; this.#isNode(item); item = this.#after(item)) {
        if (index++ === step) return this.#follow(item, rest, startOf(this.#events[item]))
      }
    }
    return found
  }

  #isNode(at: number): boolean {
    const event = this.#events[at]
    return event !== undefined && event.type !== EVENT_ID.POP
  }

  /** Index of the event after the node that begins at `at`. */
  #after(at: number): number {
    let depth = 0
    for (let next = at; next < this.#events.length; next++) {
      const type = this.#events[next]?.type
      if (type === EVENT_ID.MAPPING || type === EVENT_ID.SEQUENCE) depth++
      else if (type === EVENT_ID.POP) depth--
      if (depth === 0) return next + 1
    }
    return this.#events.length
  }
}

function startOf(event: Event | undefined): number {
  if (event === undefined) return 0
  if (event.type === EVENT_ID.SCALAR) return Math.max(0, event.valueStart)
  return event.type === EVENT_ID.MAPPING || event.type === EVENT_ID.SEQUENCE ? Math.max(0, event.start) : 0
}
