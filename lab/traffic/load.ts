// SPDX-License-Identifier: Apache-2.0
/** Steady traffic while something happens to a lab, and what that cost. Layer: lab. */
import { readFileSync } from 'node:fs'
import type { FlowResult, RequestsResult, StreamResult } from '../tools/results.ts'
import { startFlow, startRequests, type FlowOptions, type RequestOptions, type Running, type Spawner } from './traffic.ts'

export interface Load {
  /** established before it happens */
  readonly flows: readonly FlowOptions[]
  /** a new connection each, all the time */
  readonly requests: readonly Omit<RequestOptions, 'count'>[]
}

export interface LoadResult {
  readonly streams: readonly StreamResult[]
  readonly requests: readonly RequestsResult[]
  /** datagrams that the senders' sockets dropped for want of buffer */
  readonly socketDrops: number
  /** packets that the machine's processors dropped from their queues, from any sender */
  readonly softnetDrops: number
}

/** Throws LabError when the load cannot be established. */
export async function underLoad(lab: Spawner, load: Load, happen: () => Promise<void>): Promise<LoadResult> {
  const before = softnetDrops()
  const flows = await Promise.all(load.flows.map((flow) => startFlow(lab, flow)))
  const requests = load.requests.map((options) => startRequests(lab, { ...options, count: 0 }))
  await Promise.all(requests.map((running) => running.event('started', 10_000)))
  await happen()
  const stop = <T>(all: readonly Running<T>[]): Promise<T[]> => Promise.all(all.map((running) => running.stop()))
  const [flowResults, requestResults]: [FlowResult[], RequestsResult[]] = await Promise.all([stop(flows), stop(requests)])
  return {
    streams: flowResults.flatMap((result) => result.streams),
    requests: requestResults,
    socketDrops: flowResults.reduce((sum, result) => sum + result.socketDrops, 0),
    softnetDrops: softnetDrops() - before,
  }
}

/** Of what was established: messages without an answer, and connections that broke. Of what was new: exchanges that
 * failed, however. */
export function lossesOf({ streams, requests }: Pick<LoadResult, 'streams' | 'requests'>): {
  readonly lost: number
  readonly refused: number
} {
  const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)
  return {
    lost: sum(streams.map((stream) => stream.lost + stream.reconnects)),
    refused: sum(requests.map((result) => result.refused + result.reset + result.timeouts + sum(Object.values(result.errors)))),
  }
}

/** Since the machine came up. */
export function softnetDrops(): number {
  const processors = readFileSync('/proc/net/softnet_stat', 'latin1').trim().split('\n')
  return processors.reduce((sum, line) => sum + Number.parseInt(line.split(' ')[1] ?? '0', 16), 0)
}
