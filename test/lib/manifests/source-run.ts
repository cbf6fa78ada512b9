// SPDX-License-Identifier: Apache-2.0
/** A directory source that runs, and what it has reported. Layer: test. */
import { systemClock } from '#lib/base/clock.ts'
import { rejectedText } from '#lib/base/result.ts'
import { DirectorySource, type DirectoryOptions } from '#lib/manifests/source.ts'
import { refText } from '#lib/model/ref.ts'
import type { KubeObject } from '#lib/model/snapshot.ts'
import type { SourceStatus } from '#lib/store/source.ts'

export class Run {
  readonly objects = new Map<string, KubeObject>()
  readonly deleted: string[] = []
  status: SourceStatus = { unavailable: undefined, problems: [] }
  synced = 0
  readonly source: DirectorySource
  readonly #controller = new AbortController()
  readonly #ended: Promise<void>

  constructor(directory: string, options: Partial<Omit<DirectoryOptions, 'directory'>> = {}) {
    this.source = new DirectorySource({ directory, clock: systemClock, ...options })
    this.#ended = this.source.run(
      {
        apply: (events) => {
          for (const event of events) {
            if (event.kind === 'upsert') this.objects.set(refText(event.object), event.object)
            else if (this.objects.delete(refText(event.ref))) this.deleted.push(refText(event.ref))
          }
        },
        synced: () => this.synced++,
        status: (status) => {
          this.status = status
        },
      },
      this.#controller.signal,
    )
  }

  /** The port of the service of this name. */
  port(name: string): number | undefined {
    const object = this.objects.get(`Service/default/${name}`)
    return object?.kind === 'Service' ? object.ports[0]?.port : undefined
  }

  get problems(): readonly string[] {
    return this.status.problems.map(({ place, rejected }) => `${place ?? ''}: ${rejectedText(rejected)}`)
  }

  async end(): Promise<void> {
    this.#controller.abort()
    await this.#ended
  }
}
