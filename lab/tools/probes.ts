// SPDX-License-Identifier: Apache-2.0
/** Datagrams that are counted where they arrive, and their results. Layer: lab (tool, pure). */
import { isResult } from './results.ts'

export interface Probe {
  /** without spaces */
  readonly id: string
  readonly seq: number
  /** ms since 1970 when it was sent */
  readonly at: number
}

/** Numbers one after the other that all arrived, with the times at which the first and the last were sent. */
export type Run = readonly [from: number, to: number, firstAt: number, lastAt: number]

export interface SinkResult {
  readonly event: 'result'
  readonly runs: Readonly<Record<string, readonly Run[]>>
}

export interface ProbeResult {
  readonly event: 'result'
  /** datagrams by id, of those from ports of their own */
  readonly sent: Readonly<Record<string, number>>
  readonly errors: Readonly<Record<string, number>>
}

/** Attempts at what no client should reach. */
export interface NegativeProbeResult {
  readonly event: 'result'
  readonly knocks: readonly NegativeProbe[]
}

export interface NegativeProbe {
  /** "tcp:10.0.0.1:80" */
  readonly to: string
  readonly tries: number
  /** answered, or refused by the other end: something got there */
  readonly through: number
  /** ms since 1970 when the first of these was begun; null when there is none */
  readonly firstAt: number | null
}

export function probeText({ id, seq, at }: Probe): string {
  return `${id} ${seq} ${at}`
}

/** undefined when it is none */
export function parseProbe(text: string): Probe | undefined {
  const match = /^(\S+) (\d+) (\d+)$/.exec(text)
  return match?.[1] === undefined ? undefined : { id: match[1], seq: Number(match[2]), at: Number(match[3]) }
}

/** Which numbers arrived, in whatever order. */
export class Arrivals {
  /** number → when it was sent */
  readonly #sentAt: (number | undefined)[] = []

  add({ seq, at }: Probe): void {
    for (let next = this.#sentAt.length; next < seq; next++) this.#sentAt.push(undefined)
    this.#sentAt[seq] = at
  }

  runs(): Run[] {
    const runs: [number, number, number, number][] = []
    for (const [seq, at] of this.#sentAt.entries()) {
      const last = runs.at(-1)
      if (at === undefined) continue
      if (last !== undefined && last[1] === seq - 1) [last[1], last[3]] = [seq, at]
      else runs.push([seq, seq, at, at])
    }
    return runs
  }
}

/** Of a whole line of output, parsed: is it this tool's result? */
export function isSinkResult(value: unknown): value is SinkResult {
  return isResult(value) && 'runs' in value
}

/** Of a whole line of output, parsed: is it this tool's result? */
export function isProbeResult(value: unknown): value is ProbeResult {
  return isResult(value) && 'sent' in value
}

/** Of a whole line of output, parsed: is it this tool's result? */
export function isNegativeProbeResult(value: unknown): value is NegativeProbeResult {
  return isResult(value) && 'knocks' in value
}
