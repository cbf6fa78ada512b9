// SPDX-License-Identifier: Apache-2.0
/** What our traffic tools report, as JSON lines. Layer: lab (tool, pure). */

/** One stream of numbered messages, each answered by the echo server. */
export interface StreamResult {
  /** "udp:10.0.0.1:80" */
  readonly stream: string
  readonly sent: number
  /** answered, each counted once */
  readonly received: number
  /** not answered by the end, whichever way was lost; for TCP also what could not be sent for want of a connection */
  readonly lost: number
  readonly duplicates: number
  /** answers that came after an answer to a later message */
  readonly outOfOrder: number
  /** TCP: connections after the first */
  readonly reconnects: number
  /** by error code, "ECONNREFUSED": 2 */
  readonly errors: Readonly<Record<string, number>>
  /** ms without any answer, at the worst */
  readonly longestGapMs: number
  /** ms since 1970 when that silence began; null when there was none */
  readonly longestGapAt: number | null
  /** ms since 1970 when the first of the lost messages was sent; null when none was lost */
  readonly firstLostAt: number | null
  /** ms from message to answer, at the worst; what waits in a socket buffer counts */
  readonly slowestMs: number
  /** answers by pod */
  readonly pods: Readonly<Record<string, number>>
  /** what the pods saw as the peer, each once */
  readonly peers: readonly string[]
}

export interface FlowResult {
  readonly event: 'result'
  readonly streams: readonly StreamResult[]
  /** of sending, without the wait for last answers */
  readonly durationMs: number
  /** datagrams that sockets of the sender's namespace dropped meanwhile, for want of buffer */
  readonly socketDrops: number
}

/** Many short exchanges, each from a socket of its own. */
export interface RequestsResult {
  readonly event: 'result'
  readonly ok: number
  readonly refused: number
  readonly reset: number
  readonly timeouts: number
  /** any other failure, by code */
  readonly errors: Readonly<Record<string, number>>
  readonly pods: Readonly<Record<string, number>>
  /** ms since 1970 of each pod's first answer */
  readonly since: Readonly<Record<string, number>>
  /** ms since 1970 when the first that failed was begun; null when none did */
  readonly firstFailedAt: number | null
  /** and the last */
  readonly lastFailedAt: number | null
  /** null when there was no answer */
  readonly latencyMs: { readonly p50: number; readonly p99: number; readonly max: number } | null
  /** the first answers, as the server gave them, without padding */
  readonly answers: readonly Answer[]
}

/** The same of several destinations, in the order in which they were given. */
export interface RequestsOfEach {
  readonly event: 'result'
  readonly each: readonly RequestsResult[]
}

/** Second connections from the port of a first one. */
export interface CollideResult {
  readonly event: 'result'
  readonly tries: number
  readonly answered: number
  /** SYNs of the second connections that had to be sent again */
  readonly lostSyns: number
  /** of those that were not answered, by code */
  readonly errors: Readonly<Record<string, number>>
}

/** The echo server's own words. */
export interface Answer {
  readonly pod: string
  /** "10.0.0.1:4711": the client, as the pod saw it */
  readonly peer: string
  /** the address that was asked, as the pod saw it */
  readonly local: string
  /** length of the request */
  readonly bytes: number
  readonly seq?: number
  readonly pad?: string
}

/** undefined when the line is none of an echo server. */
export function parseAnswer(line: string): Answer | undefined {
  try {
    const parsed: unknown = JSON.parse(line)
    return isAnswer(parsed) ? parsed : undefined
  } catch {
    return undefined
  }
}

function isAnswer(value: unknown): value is Answer {
  return typeof value === 'object' && value !== null && 'pod' in value && 'peer' in value && 'local' in value
}

/** Of a whole line of output, parsed: is it this tool's result? */
export function isFlowResult(value: unknown): value is FlowResult {
  return isResult(value) && 'streams' in value
}

/** Of a whole line of output, parsed: is it this tool's result? */
export function isRequestsResult(value: unknown): value is RequestsResult {
  return isResult(value) && 'answers' in value
}

/** Of a whole line of output, parsed: is it this tool's result? */
export function isRequestsOfEach(value: unknown): value is RequestsOfEach {
  return isResult(value) && 'each' in value
}

/** Of a whole line of output, parsed: is it this tool's result? */
export function isCollideResult(value: unknown): value is CollideResult {
  return isResult(value) && 'lostSyns' in value
}

/** Of a whole line of output, parsed: is it a tool's result? */
export function isResult(value: unknown): value is { readonly event: 'result' } {
  return typeof value === 'object' && value !== null && 'event' in value && value.event === 'result'
}
