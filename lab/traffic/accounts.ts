// SPDX-License-Identifier: Apache-2.0
/** Constant traffic of several kinds, and an account of each kind: how much was sent, and what became of it.
 * Layer: lab. */
import { endpointText, type Endpoint } from '../tools/address.ts'
import type { FlowResult, RequestsOfEach, RequestsResult, StreamResult } from '../tools/results.ts'
import { startFlow, startRequestsToEach, type Running, type Spawner } from './traffic.ts'

/** Clients that reach servers in one way, whose losses are counted together. Of a place there are at least two
 * destinations in all. */
export interface Way {
  /** "pod to cluster address" */
  readonly kind: string
  /** a place */
  readonly from: string
  readonly to: readonly Endpoint[]
}

export interface Rates {
  /** messages a second of each stream */
  readonly stream: number
  /** new connections a second to each destination; 0: streams alone */
  readonly fresh: number
}

/** Of one kind and one form of traffic. */
export interface Account {
  /** "pod to cluster address, tcp stream" */
  readonly kind: string
  /** messages of streams, or new connections */
  readonly sent: number
  /** without an answer */
  readonly lost: number
  readonly refused: number
  /** connections that broke, or failed in any other way */
  readonly reset: number
  /** ms of a stream without any answer, or of a new connection until its answer, at the worst */
  readonly worstMs: number
  readonly failures: readonly Failure[]
}

/** Of one client and one destination, of which something was lost. */
export interface Failure {
  /** "node/a to udp:10.96.0.1:53" */
  readonly between: string
  /** of errors that sockets had */
  readonly codes: readonly string[]
  /** ms since 1970 of the first loss and, of new connections, the last */
  readonly at: readonly number[]
}

interface Client {
  readonly ways: readonly Way[]
  readonly flow: Running<FlowResult>
  readonly requests: Running<RequestsOfEach> | undefined
}

/** From each place a process with all its streams, and one that makes its new connections, if there are any. */
export class ConstantTraffic implements AsyncDisposable {
  readonly #running: readonly Client[]
  #accounts: Promise<readonly Account[]> | undefined

  private constructor(running: readonly Client[]) {
    this.#running = running
  }

  /** Resolves when every stream has had an answer. Throws LabError when one has none. */
  static async start(places: Spawner, ways: readonly Way[], rates: Rates): Promise<ConstantTraffic> {
    const running = [...Map.groupBy(ways, ({ from }) => from)].map(async ([from, own]) => {
      const to = own.flatMap((way) => way.to)
      const flow = await startFlow(places, { from, to, rate: rates.stream })
      const requests = rates.fresh === 0 ? undefined : startRequestsToEach(places, { from, to, rate: rates.fresh, count: 0 })
      await requests?.event('started', 10_000)
      return { ways: own, flow, requests }
    })
    return new ConstantTraffic(await Promise.all(running))
  }

  /** Ends all of it. */
  stop(): Promise<readonly Account[]> {
    this.#accounts ??= this.#end()
    return this.#accounts
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  async #end(): Promise<readonly Account[]> {
    const ended = this.#running.map(async ({ ways, flow, requests }) => {
      const [{ streams }, asked] = await Promise.all([flow.stop(), requests?.stop()])
      const ends = ways.flatMap(({ kind, from, to }) =>
        to.map((end) => ({ kind, proto: end.proto, between: `${from} to ${endpointText(end)}` })),
      )
      return ends.flatMap(({ kind, proto, between }, index) => [
        ...ofStream({ kind: `${kind}, ${proto} stream`, between }, streams[index]),
        ...ofRequests({ kind: `${kind}, new ${proto}`, between }, asked?.each[index]),
      ])
    })
    const all = (await Promise.all(ended)).flat()
    return [...Map.groupBy(all, ({ kind }) => kind).values()].map(sumOf)
  }
}

/** Those of which something was lost. */
export function withLosses(accounts: readonly Account[]): readonly Account[] {
  return accounts.filter(({ lost, refused, reset }) => lost + refused + reset > 0)
}

/** A line a kind, for people to read. */
export function accountsText(accounts: readonly Account[]): string {
  const head = ['kind', 'sent', 'lost', 'refused', 'reset', 'worst ms']
  const rows = accounts.map(({ kind, sent, lost, refused, reset, worstMs }) => [kind, sent, lost, refused, reset, worstMs].map(String))
  const width = Math.max(...rows.map(([kind = '']) => kind.length))
  return [head, ...rows].map(([kind = '', ...cells]) => [kind.padEnd(width), ...cells.map((cell) => cell.padStart(9))].join('')).join('\n')
}

interface Subject {
  readonly kind: string
  readonly between: string
}

function ofStream({ kind, between }: Subject, stream: StreamResult | undefined): readonly Account[] {
  if (stream === undefined) return []
  const { sent, reconnects, errors, longestGapMs, slowestMs, firstLostAt } = stream
  const refused = Math.min(stream.lost, errors['ECONNREFUSED'] ?? 0)
  const lost = stream.lost - refused
  const failure = { between, codes: Object.keys(errors), at: firstLostAt === null ? [] : [firstLostAt] }
  const failures = stream.lost + reconnects > 0 ? [failure] : []
  return [{ kind, sent, lost, refused, reset: reconnects, worstMs: Math.max(longestGapMs, slowestMs), failures }]
}

function ofRequests({ kind, between }: Subject, result: RequestsResult | undefined): readonly Account[] {
  if (result === undefined) return []
  const { ok, refused, timeouts, errors, firstFailedAt, lastFailedAt } = result
  const reset = result.reset + sum(Object.values(errors))
  const failed = refused + timeouts + reset
  const at = [firstFailedAt, lastFailedAt].filter((time) => time !== null)
  const failures = failed > 0 ? [{ between, codes: Object.keys(errors), at }] : []
  const worstMs = Math.round(result.latencyMs?.max ?? 0)
  return [{ kind, sent: ok + failed, lost: timeouts, refused, reset, worstMs, failures }]
}

/** Of one kind. */
function sumOf(all: readonly Account[]): Account {
  const total = (key: 'sent' | 'lost' | 'refused' | 'reset'): number => sum(all.map((account) => account[key]))
  return {
    kind: all[0]?.kind ?? '',
    sent: total('sent'),
    lost: total('lost'),
    refused: total('refused'),
    reset: total('reset'),
    worstMs: Math.max(...all.map(({ worstMs }) => worstMs)),
    failures: all.flatMap(({ failures }) => failures),
  }
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
