// SPDX-License-Identifier: Apache-2.0
/** Traffic between places of a lab, and what became of it. Layer: lab. */
import type { ChildProcess } from 'node:child_process'
import { createInterface } from 'node:readline'
import { systemClock } from '#lib/base/clock.ts'
import { LabError } from '../errors.ts'
import { toolCommand } from '../paths.ts'
import { longer, slower } from '../slowness.ts'
import { endpointText, type Endpoint } from '../tools/address.ts'
import {
  isFlowResult,
  isRequestsOfEach,
  isRequestsResult,
  type FlowResult,
  type RequestsOfEach,
  type RequestsResult,
} from '../tools/results.ts'

/** Starts a command in a place of the lab, or in one that only its provider knows. */
export type Spawner = { spawn(place: string, command: readonly string[]): ChildProcess }

export interface RequestOptions {
  /** a place of the lab */
  readonly from: string
  readonly to: Endpoint
  /** default 1; 0: until `stop` */
  readonly count?: number
  /** a second; default 100 */
  readonly rate?: number
  /** default 2000 */
  readonly timeoutMs?: number
  /** bytes of the request; default 64 */
  readonly payload?: number
  /** bytes of padding in the answer; default 0 */
  readonly reply?: number
}

export interface FlowOptions {
  /** a place of the lab */
  readonly from: string
  readonly to: readonly Endpoint[]
  /** messages a second and stream; default 200 */
  readonly rate?: number
  /** bytes; default 64 */
  readonly payload?: number
  /** wait for last answers; default 1000 */
  readonly drainMs?: number
  /** time for the first ones; default 10,000 */
  readonly establishMs?: number
}

/** One socket a request. Refused and unanswered ones are counted, not thrown. */
export async function request(lab: Spawner, options: RequestOptions): Promise<RequestsResult> {
  return await startRequests(lab, options).result
}

export function startRequests(lab: Spawner, options: RequestOptions): Running<RequestsResult> {
  return new Running(lab.spawn(options.from, requestsCommand([options.to], options)), {
    subject: `requests from ${options.from}`,
    isResult: isRequestsResult,
  })
}

/** To at least two destinations, by one process; rate and count are of each. */
export function startRequestsToEach(
  lab: Spawner,
  options: Omit<RequestOptions, 'to'> & { readonly to: readonly Endpoint[] },
): Running<RequestsOfEach> {
  return new Running(lab.spawn(options.from, requestsCommand(options.to, options)), {
    subject: `requests from ${options.from}`,
    isResult: isRequestsOfEach,
  })
}

function requestsCommand(to: readonly Endpoint[], options: Omit<RequestOptions, 'to'>): string[] {
  const flags = {
    count: options.count ?? 1,
    rate: slower(options.rate ?? 100),
    'timeout-ms': longer(options.timeoutMs ?? 2000),
    payload: options.payload ?? 64,
    reply: options.reply ?? 0,
  }
  return [
    ...toolCommand('requests'),
    ...to.flatMap((one) => ['--to', endpointText(one)]),
    ...Object.entries(flags).flatMap(([name, value]) => [`--${name}`, String(value)]),
  ]
}

/** Steady numbered streams, each on one socket, until `stop`. Resolves when each has had an answer. */
export async function startFlow(lab: Spawner, options: FlowOptions): Promise<Running<FlowResult>> {
  const flags = { rate: slower(options.rate ?? 200), payload: options.payload ?? 64, 'drain-ms': longer(options.drainMs ?? 1000) }
  const command = [
    ...toolCommand('flow'),
    ...options.to.flatMap((to) => ['--to', endpointText(to)]),
    ...Object.entries(flags).flatMap(([name, value]) => [`--${name}`, String(value)]),
  ]
  const flow = new Running(lab.spawn(options.from, command), { subject: `flow from ${options.from}`, isResult: isFlowResult })
  await flow.event('established', options.establishMs ?? 10_000)
  return flow
}

/** A traffic tool at work. */
export class Running<T> {
  readonly #child: ChildProcess
  readonly #subject: string
  readonly #isResult: (value: unknown) => value is T
  readonly #seen = new Map<string, PromiseWithResolvers<'seen'>>()
  #stderr = ''
  /** Settles when the tool ends; rejects with LabError when it ends without a result. */
  readonly result: Promise<T>

  constructor(child: ChildProcess, tool: { readonly subject: string; readonly isResult: (value: unknown) => value is T }) {
    this.#child = child
    this.#subject = tool.subject
    this.#isResult = tool.isResult
    this.result = this.#read()
    // a caller may wait for it, and need not
    this.result.catch(() => undefined)
  }

  /** Ends it, waits for last answers and the result. */
  async stop(): Promise<T> {
    await this.event('started', 10_000)
    this.#child.kill('SIGTERM')
    return await this.result
  }

  /** Resolves when the tool reports it; throws LabError when it ends first or does not within `timeoutMs`, and ends
   * it. */
  async event(name: string, timeoutMs: number): Promise<void> {
    const stop = new AbortController()
    const longest = longer(timeoutMs)
    const late = systemClock.sleep(longest, stop.signal).then(
      () => 'late' as const,
      () => 'done' as const,
    )
    const ended = this.result.then(() => 'ended' as const)
    try {
      const first = await Promise.race([this.#promise(name).promise, late, ended])
      if (first === 'seen') return
      this.#child.kill('SIGTERM')
      const result = JSON.stringify(await this.result)
      throw new LabError(
        this.#subject,
        first === 'late' ? `not ${name} after ${longest} ms: ${result}` : `ended before it was ${name}: ${result}`,
      )
    } finally {
      stop.abort()
    }
  }

  async #read(): Promise<T> {
    const { stdout, stderr } = this.#child
    if (stdout === null) throw new LabError(this.#subject, 'has no output')
    stderr?.on('data', (chunk: Buffer) => (this.#stderr += chunk.toString()))
    let last: unknown
    for await (const line of createInterface({ input: stdout })) {
      last = parse(line)
      if (typeof last === 'object' && last !== null && 'event' in last && typeof last.event === 'string')
        this.#promise(last.event).resolve('seen')
    }
    if (this.#isResult(last)) return last
    throw new LabError(this.#subject, `ended without a result: ${this.#stderr.trim()}`)
  }

  #promise(name: string): PromiseWithResolvers<'seen'> {
    const known = this.#seen.get(name) ?? Promise.withResolvers<'seen'>()
    this.#seen.set(name, known)
    return known
  }
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}
