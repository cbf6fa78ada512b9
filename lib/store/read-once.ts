// SPDX-License-Identifier: Apache-2.0
/** What a source holds, read once. Layer: lib/store. */
import type { Problem, Source, SourceEvent, SourceStatus } from './source.ts'

export interface SourceContent {
  readonly events: readonly SourceEvent[]
  /** what it has and we cannot use */
  readonly problems: readonly Problem[]
  /** why it could not be read; undefined: it was */
  readonly unavailable: string | undefined
}

/** Ends with the first word that it cannot be read. */
export async function readOnce(source: Source): Promise<SourceContent> {
  const stop = new AbortController()
  const events: SourceEvent[] = []
  let status: SourceStatus | undefined
  const sink = {
    apply: (some: readonly SourceEvent[]): void => {
      for (const event of some) events.push(event)
    },
    synced: (): void => {
      stop.abort()
    },
    status: (now: SourceStatus): void => {
      status = now
      if (now.unavailable !== undefined) stop.abort()
    },
  }
  await source.run(sink, stop.signal)
  return { events, problems: status?.problems ?? [], unavailable: status?.unavailable?.reason }
}
