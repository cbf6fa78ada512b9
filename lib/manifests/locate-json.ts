// SPDX-License-Identifier: Apache-2.0
/** Where in a JSON text something is: the parser itself does not say. Used only to place an error.
 * Layer: lib/manifests. */
import type { Step } from './path.ts'

/** Offset of what `path` leads to (of the field's name where the last step is one), or of the deepest part of the
 * way that is there. */
export function locateInJson(text: string, path: readonly Step[]): number {
  const scanner = new Scanner(text)
  scanner.space()
  scanner.follow(path)
  return scanner.found
}

/** Offset of the first thing that is not JSON; undefined when the text is valid. */
export function jsonErrorAt(text: string): number | undefined {
  const scanner = new Scanner(text)
  scanner.space()
  if (!scanner.skip(0)) return scanner.at
  scanner.space()
  return scanner.at < text.length ? scanner.at : undefined
}

/** Deeper than any manifest; the scan is recursive. */
const DEEPEST = 200

/** Methods return false, with `at` on the offender, when the text is not JSON. */
class Scanner {
  at = 0
  found = 0
  readonly #text: string

  constructor(text: string) {
    this.#text = text
  }

  space(): void {
    while (' \t\n\r'.includes(this.#text.charAt(this.at)) && this.at < this.#text.length) this.at++
  }

  /** Moves to what the path leads to; `found` is as far as it got. */
  follow(path: readonly Step[]): boolean {
    const [step, ...rest] = path
    if (step === undefined) return true
    return this.#members(0, (name, index, start) => {
      if (step !== (name ?? index)) return 'skip'
      this.found = start
      this.follow(rest)
      return 'stop'
    })
  }

  /** Past one value. */
  skip(depth: number): boolean {
    const char = this.#text.charAt(this.at)
    if (char === '{' || char === '[') return depth < DEEPEST && this.#members(depth, () => 'skip')
    if (char === '"') return this.#string()
    return this.#match(/(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)/y)
  }

  /** Calls `visit` at each member of an object or list; its value is skipped unless `visit` says stop. */
  #members(depth: number, visit: (name: string | undefined, index: number, start: number) => 'skip' | 'stop'): boolean {
    const open = this.#text.charAt(this.at)
    if (open !== '{' && open !== '[') return true
    const close = open === '{' ? '}' : ']'
    this.at++
    this.space()
    if (this.#take(close)) return true
    for (let index = 0; ; index++) {
      const start = this.at
      const name = open === '{' ? this.#name() : undefined
      if (open === '{' && name === undefined) return false
      if (visit(name, index, start) === 'stop') return true
      if (!this.skip(depth + 1)) return false
      this.space()
      if (this.#take(close)) return true
      if (!this.#take(',')) return false
      this.space()
    }
  }

  /** A field's name, its colon and the space around it. */
  #name(): string | undefined {
    const start = this.at
    if (this.#text.charAt(this.at) !== '"' || !this.#string()) return undefined
    const quoted = this.#text.slice(start, this.at)
    this.space()
    if (!this.#take(':')) return undefined
    this.space()
    const name: unknown = JSON.parse(quoted)
    return typeof name === 'string' ? name : undefined
  }

  #string(): boolean {
    // control characters must be escaped
    return this.#match(/"(?:[^"\\\0-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y)
  }

  #match(pattern: RegExp): boolean {
    pattern.lastIndex = this.at
    if (!pattern.test(this.#text)) return false
    this.at = pattern.lastIndex
    return true
  }

  #take(char: string): boolean {
    if (this.#text.charAt(this.at) !== char) return false
    this.at++
    return true
  }
}
