// SPDX-License-Identifier: Apache-2.0
/** An aggregator on loopback, and a client of its gRPC. Layer: test. */
import { createClient, type Client } from '@connectrpc/connect'
import { createGrpcTransport, Http2SessionManager } from '@connectrpc/connect-node'
import type { FlowUpdate } from '#lib/flows/flow.ts'
import { updateMessage } from '#lib/flows/wire/codec.ts'
import { FlowCollector, Flows, Statistics } from '#lib/flows/wire/goldmane_pb.ts'
import { createLog } from '#lib/obs/log.ts'
import { Aggregator } from '#flows/aggregator.ts'
import { GrpcServer } from '#flows/grpc/server.ts'
import { LIMITS, type Limits } from '#flows/rest/events.ts'
import { RestServer } from '#flows/rest/server.ts'
import { waitFor } from '../../lab/wait.ts'
import { HANG_MS } from '../../testkit/base/hang.ts'
import { TestStore } from './made.ts'

export interface Clients extends Disposable {
  readonly collector: Client<typeof FlowCollector>
  readonly flows: Client<typeof Flows>
  readonly statistics: Client<typeof Statistics>
}

export function clientsOf(port: number): Clients {
  const baseUrl = `http://127.0.0.1:${port}`
  const sessionManager = new Http2SessionManager(baseUrl)
  const transport = createGrpcTransport({ baseUrl, sessionManager })
  return {
    collector: createClient(FlowCollector, transport),
    flows: createClient(Flows, transport),
    statistics: createClient(Statistics, transport),
    [Symbol.dispose]: () => {
      sessionManager.abort()
    },
  }
}

/** Sends all on one connection; resolves with how many receipts have come. */
export async function send(clients: Clients, updates: Iterable<FlowUpdate>, lost = 0): Promise<number> {
  let receipts = 0
  for await (const receipt of clients.collector.connect(messages(updates, lost))) receipts += receipt.$typeName.length > 0 ? 1 : 0
  return receipts
}

// eslint-disable-next-line @typescript-eslint/require-await -- as the client wants it
async function* messages(updates: Iterable<FlowUpdate>, lost: number) {
  for (const update of updates) yield updateMessage(update, lost)
}

/** A store, whose time the test moves, behind its APIs. */
export class Served implements AsyncDisposable {
  readonly #stack = new AsyncDisposableStack()
  readonly #stop = new AbortController()
  readonly it: TestStore
  readonly aggregator: Aggregator
  readonly clients: Clients
  readonly grpcPort: number
  readonly httpPort: number

  private constructor(it: TestStore, stop: AbortController, at: Pick<Served, 'aggregator' | 'grpcPort' | 'httpPort'>) {
    this.it = it
    this.#stop = stop
    this.aggregator = at.aggregator
    this.grpcPort = at.grpcPort
    this.httpPort = at.httpPort
    this.clients = clientsOf(at.grpcPort)
  }

  static async start(limits: Partial<Limits> = {}): Promise<Served> {
    const it = await TestStore.open()
    const stop = new AbortController()
    const log = createLog({ level: 'silent' })
    const aggregator = new Aggregator({ store: it.store, log, wall: () => it.now * 1000, signal: stop.signal })
    const server = new GrpcServer(aggregator)
    const rest = new RestServer(aggregator, { ...LIMITS, ...limits })
    const grpcPort = await server.start('127.0.0.1', 0)
    const served = new Served(it, stop, { aggregator, grpcPort, httpPort: await rest.start('127.0.0.1', 0) })
    served.#stack.use(it)
    served.#stack.use(log)
    served.#stack.use(server)
    served.#stack.use(rest)
    served.#stack.use(served.clients)
    return served
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    await this.#stack.disposeAsync()
  }
}

/** Bounded, for one that hangs. */
export async function until(is: () => boolean): Promise<void> {
  if ((await waitFor(() => (is() ? true : undefined), { timeoutMs: HANG_MS })) === undefined) throw new Error('it did not come to that')
}
