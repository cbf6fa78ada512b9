// SPDX-License-Identifier: Apache-2.0
/** Flows as server-sent events: what is kept, what comes, and what was left out. Layer: flows. */
import type { ServerResponse } from 'node:http'
import { WINDOW_SECONDS, type FlowWindow } from '#lib/flows/flow.ts'
import type { Aggregator } from '../aggregator.ts'
import { follow, type Step } from '../live/follow.ts'
import { startOf } from '../query/range.ts'
import type { FlowsAsked } from './query.ts'
import { flowShape } from './shapes.ts'

export interface Limits {
  /** flows, of what is kept: the newest windows */
  readonly mostKept: number
  readonly heartbeatMs: number
  /** a client that reads nothing for so long is cut off */
  readonly stuckMs: number
}

/** A page holds as many flows. */
export const LIMITS: Limits = { mostKept: 20_000, heartbeatMs: 15_000, stuckMs: 30_000 }

export interface Asking {
  readonly asked: FlowsAsked
  /** the id that the client has seen last; empty: none */
  readonly lastId: string
  readonly limits: Limits
}

/** Resolves when the client has gone, or was cut off, or the process ends. */
export async function sendEvents(aggregator: Aggregator, { asked, lastId, limits }: Asking, response: ServerResponse): Promise<void> {
  const gone = new AbortController()
  response.once('close', () => {
    gone.abort()
  })
  const { store, feed, boot } = aggregator
  const signal = AbortSignal.any([gone.signal, aggregator.signal])
  const seen = seenOf(lastId)
  // of another process the windows since then are told, of which the client may have some
  const from = seen?.from ?? (asked.from === 0 ? undefined : startOf(asked.from, aggregator.now()))
  const after = seen?.boot === boot ? seen.place : undefined
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache', connection: 'keep-alive' })
  response.flushHeaders()
  const idOf = (place: number): string => `id: ${boot}.${place}.${aggregator.now()}\n`
  const { mostKept: most, heartbeatMs: quietMs, stuckMs } = limits
  for await (const step of follow({ store, feed, filter: asked.filter, from, after, most, quietMs, signal })) {
    if (step.kind === 'omitted') aggregator.count.omitted += step.count
    if (!(await written(response, textOf(step, idOf), AbortSignal.any([signal, AbortSignal.timeout(stuckMs)])))) break
  }
  if (!response.writableNeedDrain) response.end()
  else {
    // what it has not read is not kept for it
    if (!signal.aborted) aggregator.count.cutOff++
    response.destroy()
  }
}

/** An id without data is remembered by the client, and is no event. What is kept has none: who loses the connection
 * meanwhile begins again. */
function textOf(step: Step, idOf: (place: number) => string): string {
  switch (step.kind) {
    case 'kept':
      return step.records.map(({ window }) => dataOf(window)).join('')
    case 'caught-up':
      return `${idOf(step.place)}\n`
    case 'came':
      return step.told.map(({ place, window }) => `${idOf(place)}${dataOf(window)}`).join('')
    case 'omitted':
      return `event: omitted\ndata: ${JSON.stringify({ count: step.count })}\n\n`
    case 'quiet':
      return ': quiet\n\n'
  }
}

function dataOf(window: FlowWindow): string {
  return `data: ${JSON.stringify(flowShape(window))}\n\n`
}

/** False: the client has gone, or does not read. */
async function written(response: ServerResponse, text: string, signal: AbortSignal): Promise<boolean> {
  if (response.write(text)) return true
  return await new Promise((resolve) => {
    const drained = (): void => {
      signal.removeEventListener('abort', stopped)
      resolve(true)
    }
    const stopped = (): void => {
      response.off('drain', drained)
      resolve(false)
    }
    response.once('drain', drained)
    signal.addEventListener('abort', stopped, { once: true })
  })
}

function seenOf(id: string): { readonly boot: string; readonly place: number; readonly from: number } | undefined {
  const [, boot, place, time] = /^([0-9a-f]+)\.([0-9]{1,15})\.([0-9]{1,10})$/.exec(id) ?? []
  if (boot === undefined || place === undefined || time === undefined) return undefined
  return { boot, place: Number(place), from: Number(time) - (Number(time) % WINDOW_SECONDS) }
}
