// SPDX-License-Identifier: Apache-2.0
/** What the asking tool reads, and what it answers, as JSON lines. Layer: lab (tool, pure). */

export interface Ask {
  /** "tcp:10.0.0.1:80" */
  readonly to: string
  /** at once, each from a socket of its own; one after another when they have one port */
  readonly count: number
  readonly timeoutMs: number
  /** bytes of the request */
  readonly payload: number
  /** bytes of padding in the answer */
  readonly reply: number
  readonly localPort?: number
}

export type Order = { readonly id: number } & (
  | ({ readonly do: 'ask' } & Ask)
  | { readonly do: 'get'; readonly url: string }
  /** a TCP connection that stays; its first question is asked at once */
  | {
      readonly do: 'open'
      readonly connection: string
      readonly to: string
      readonly text?: string
      readonly timeoutMs: number
      readonly localPort?: number
    }
  | { readonly do: 'say'; readonly connection: string; readonly text?: string; readonly timeoutMs: number }
  /** says a last line, closes its half, waits for the other's */
  | { readonly do: 'finish'; readonly connection: string; readonly timeoutMs: number }
)

/** What came of one question. */
export type Outcome =
  | { readonly pod: string; readonly peer: string; readonly local: string; readonly bytes: number }
  | { readonly status: number; readonly text: string }
  | { readonly finished: true }
  /** an error's code, or TIMEOUT */
  | { readonly failed: string }

export interface Reply {
  readonly id: number
  readonly outcomes: readonly Outcome[]
}

export function isOrder(value: unknown): value is Order {
  return isNumbered(value) && 'do' in value
}

export function isReply(value: unknown): value is Reply {
  return isNumbered(value) && 'outcomes' in value && Array.isArray(value.outcomes)
}

function isNumbered(value: unknown): value is { readonly id: number } {
  return typeof value === 'object' && value !== null && 'id' in value && typeof value.id === 'number'
}
