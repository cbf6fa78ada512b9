// SPDX-License-Identifier: Apache-2.0
/** The gRPC client of an aggregator. Its libraries are loaded when there is one. Layer: agent/flows. */
import { createClient } from '@connectrpc/connect'
import { createGrpcTransport, Http2SessionManager } from '@connectrpc/connect-node'
import type { FlowUpdate } from '#lib/flows/flow.ts'
import { updateMessage } from '#lib/flows/wire/codec.ts'
import { FlowCollector } from '#lib/flows/wire/goldmane_pb.ts'

export interface CollectorAddress {
  readonly url: string
  /** PEM */
  readonly ca?: Buffer
  readonly cert?: Buffer
  readonly key?: Buffer
}

export interface Collector extends Disposable {
  /** Each update with the records that the node has lost; a receipt for each comes back, in their order. */
  connect(updates: AsyncIterable<readonly [FlowUpdate, number]>, signal: AbortSignal): AsyncIterable<unknown>
}

/** An aggregator that is gone without a word is found by this. */
const PING_MS = 15_000
const PING_TIMEOUT_MS = 10_000

export function openCollector({ url, ...tls }: CollectorAddress): Collector {
  const ping = { pingIntervalMs: PING_MS, pingTimeoutMs: PING_TIMEOUT_MS, pingIdleConnection: true }
  const sessionManager = new Http2SessionManager(url, ping, tls)
  const client = createClient(FlowCollector, createGrpcTransport({ baseUrl: url, sessionManager }))
  return {
    connect: (updates, signal) => client.connect(messages(updates), { signal }),
    [Symbol.dispose]: () => {
      sessionManager.abort()
    },
  }
}

async function* messages(updates: AsyncIterable<readonly [FlowUpdate, number]>) {
  for await (const [update, lost] of updates) yield updateMessage(update, lost)
}
