// SPDX-License-Identifier: Apache-2.0
/** Flows made by hand, and a store of them. Layer: test. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { EndDetails, FlowCounts, FlowKey, FlowWindow } from '#lib/flows/flow.ts'
import type { ReceivedUpdate } from '#lib/flows/wire/codec.ts'
import { FlowStore, type StoreOptions } from '#flows/store/store.ts'

/** A multiple of 15. */
export const T0 = 1_800_000_000

export const WEB_TO_DB: FlowKey = {
  source: { type: 'WorkloadEndpoint', name: 'web-*', namespace: 'shop' },
  dest: { type: 'WorkloadEndpoint', name: 'db-*', namespace: 'data' },
  destPort: 5432,
  service: { namespace: 'data', name: 'db', portName: 'pg', port: 5432 },
  protocol: 'tcp',
  reporter: 'Src',
  action: 'Allow',
  reason: '',
  enforced: [{ kind: 'NetworkPolicy', tier: 'default', namespace: 'shop', name: 'web-out', action: 'Allow', rule: 3 }],
  pending: [],
}

export const NO_COUNTS: FlowCounts = { packetsIn: 0, packetsOut: 0, bytesIn: 0, bytesOut: 0, started: 0, completed: 0, live: 0 }

export const NO_DETAILS: EndDetails = { labels: [], addresses: [], pods: [], node: '', owner: '' }

export interface Made {
  readonly key?: Partial<FlowKey>
  readonly start?: number
  readonly counts?: Partial<FlowCounts>
  readonly source?: Partial<EndDetails>
  readonly dest?: Partial<EndDetails>
  readonly ports?: readonly number[]
}

export function windowOf({ key, start = T0, counts, source, dest, ports = [] }: Made = {}): FlowWindow {
  return {
    key: { ...WEB_TO_DB, ...key },
    start,
    counts: { ...NO_COUNTS, ...counts },
    source: { ...NO_DETAILS, ...source },
    dest: { ...NO_DETAILS, ...dest },
    sourcePorts: ports,
  }
}

export function updateOf(node: string, sequence: number, made: Made = {}): ReceivedUpdate {
  return { kind: 'update', window: windowOf(made), origin: { node, sequence }, lost: 0, unknownHits: 0 }
}

/** Of a client that is none of our nodes. */
export function foreignOf(made: Made = {}): ReceivedUpdate {
  return { kind: 'update', window: windowOf(made), origin: undefined, lost: 0, unknownHits: 0 }
}

/** A store in a file of its own, whose time the test moves. */
export class TestStore implements AsyncDisposable {
  readonly #folder = mkdtempSync(join(tmpdir(), 'netplane-flows-'))
  readonly #options: Partial<StoreOptions>
  #store: FlowStore | undefined
  /** seconds */
  now = T0 + 10

  constructor(options: Partial<StoreOptions> = {}) {
    this.#options = options
  }

  static async open(options: Partial<StoreOptions> = {}): Promise<TestStore> {
    const made = new TestStore(options)
    await made.start()
    return made
  }

  get file(): string {
    return join(this.#folder, 'flows.duckdb')
  }

  get store(): FlowStore {
    if (this.#store === undefined) throw new Error('not open')
    return this.#store
  }

  async start(): Promise<void> {
    this.#store = await FlowStore.open({
      file: this.file,
      memoryMb: 128,
      threads: 1,
      clock: { wall: () => this.now * 1000 },
      retentionSeconds: 3600,
      retentionBytes: 2 ** 30,
      openSeconds: 120,
      ...this.#options,
    })
  }

  async stop(): Promise<void> {
    await this.#store?.[Symbol.asyncDispose]()
    this.#store = undefined
  }

  /** Time goes on so far that all windows are closed. */
  async closeAll(): Promise<void> {
    this.now += 150
    await this.store.flush()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
    rmSync(this.#folder, { recursive: true })
  }
}
