// SPDX-License-Identifier: Apache-2.0
/** A source that runs, and what it has reported. Layer: test. */
import { ApiSource, type ApiSourceOptions } from '#lib/api/source.ts'
import { rejectedText } from '#lib/base/result.ts'
import { refText } from '#lib/model/ref.ts'
import type { SourceEvent, SourceStatus } from '#lib/store/source.ts'
import { until } from '../../../testkit/base/until.ts'

export type SourceRunOptions = Omit<ApiSourceOptions, 'node'> & Partial<Pick<ApiSourceOptions, 'node'>>

export class SourceRun implements AsyncDisposable {
  readonly source: ApiSource
  /** "upsert Service/default/web" */
  readonly events: string[] = []
  /** in the order of their coming; what is gone is not there */
  readonly objects = new Map<string, SourceEvent & { readonly kind: 'upsert' }>()
  synced = 0
  status: SourceStatus | undefined
  readonly #stop = new AbortController()
  readonly #run: Promise<void>

  constructor(options: SourceRunOptions) {
    this.source = new ApiSource({ node: 'n1', backoff: { firstMs: 5, maxMs: 20 }, absentMs: 20, ...options })
    this.#run = this.source.run(
      {
        apply: (events) => {
          for (const event of events) this.#take(event)
        },
        synced: () => {
          this.synced++
        },
        status: (status) => {
          this.status = status
        },
      },
      this.#stop.signal,
    )
  }

  async untilSynced(): Promise<this> {
    await until('the source to be synced', () => this.synced > 0)
    return this
  }

  async untilThere(ref: string, ms?: number): Promise<void> {
    await until(`${ref} to be there`, () => this.objects.has(ref), ms)
  }

  async untilGone(ref: string, ms?: number): Promise<void> {
    await until(`${ref} to be gone`, () => !this.objects.has(ref), ms)
  }

  get problems(): readonly string[] {
    return (this.status?.problems ?? []).map(({ place, rejected }) => `${place ?? '-'}: ${rejectedText(rejected)}`)
  }

  get unavailable(): string | undefined {
    return this.status?.unavailable?.reason
  }

  /** What has come since this was last asked. */
  takeEvents(): string[] {
    return this.events.splice(0)
  }

  async end(): Promise<void> {
    this.#stop.abort()
    await this.#run
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end()
  }

  #take(event: SourceEvent): void {
    const ref = refText(event.kind === 'upsert' ? event.object : event.ref)
    this.events.push(`${event.kind} ${ref}`)
    if (event.kind === 'upsert') this.objects.set(ref, event)
    else this.objects.delete(ref)
  }
}
