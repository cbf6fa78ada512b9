// SPDX-License-Identifier: Apache-2.0
/** A page of a list as JSON, whose objects are read one by one: it may have hundreds of the longest that there are.
 * Layer: lib/api (pure). */
import type { Sliced } from '../../base/async/slices.ts'
import { isObject } from '../../base/object.ts'
import { UnreadableError } from '../errors.ts'

/** After so many others may have their turn: it takes about a millisecond. */
const STEP_BYTES = 1 << 19
const ITEMS = Buffer.from('"items"')
/** A list is inside one, its objects inside two. */
const [IN_LIST, IN_ITEMS] = [1, 2]

/** Places in the text. */
interface Span {
  readonly start: number
  /** behind the last byte */
  readonly end: number
}

interface Found {
  /** of all that is between the brackets */
  readonly inside: Span
  readonly items: readonly Span[]
}

/** The list as its JSON says, but that `items` are read as they are taken, which throws UnreadableError. Undefined: it
 * is no JSON. */
export function* readJsonList(bytes: Buffer): Sliced<unknown> {
  const found = yield* findItems(bytes)
  if (found === undefined) return jsonOf(bytes.toString())
  const { inside, items } = found
  const list = jsonOf(Buffer.concat([bytes.subarray(0, inside.start), bytes.subarray(inside.end)]).toString())
  return isObject(list) ? { ...list, items: eachOf(bytes, items) } : undefined
}

function* eachOf(bytes: Buffer, spans: readonly Span[]): Generator {
  for (const { start, end } of spans) {
    const item = jsonOf(bytes.toString('utf8', start, end))
    if (item === undefined) throw new UnreadableError('an object of the list is no JSON')
    yield item
  }
}

/** Undefined: the text is no JSON. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Undefined: there are none. */
function* findItems(bytes: Buffer): Sliced<Found | undefined> {
  const items: Span[] = []
  let inside: Span | undefined
  /** behind the bracket, while it is open */
  let open: number | undefined
  /** of the text that was last in the list itself: its next value's name */
  let name: Span | undefined
  let depth = 0
  let start = 0
  let rest = STEP_BYTES
  for (let at = 0; at < bytes.length; at++) {
    if (at >= rest) {
      rest = at + STEP_BYTES
      yield
    }
    switch (bytes[at] ?? 0) {
      case 0x22: {
        const end = endOfText(bytes, at)
        if (depth === IN_LIST) name = { start: at, end }
        at = end - 1
        break
      }
      case 0x5b: // [
      case 0x7b: // {
        if (depth === IN_ITEMS && open !== undefined) start = at
        depth++
        if (depth === IN_ITEMS && bytes[at] === 0x5b && inside === undefined && isItems(bytes, name)) open = at + 1
        break
      case 0x5d: // ]
      case 0x7d: // }
        depth--
        if (open === undefined) break
        if (depth === IN_ITEMS) items.push({ start, end: at + 1 })
        if (depth !== IN_LIST) break
        inside = { start: open, end: at }
        open = undefined
    }
  }
  return inside && { inside, items }
}

function isItems(bytes: Buffer, name: Span | undefined): boolean {
  return name !== undefined && ITEMS.equals(bytes.subarray(name.start, name.end))
}

/** Behind the quote at its end. */
function endOfText(bytes: Buffer, start: number): number {
  for (let at = start + 1; at < bytes.length; at++) {
    if (bytes[at] === 0x5c) at++
    else if (bytes[at] === 0x22) return at + 1
  }
  return bytes.length
}
