// SPDX-License-Identifier: Apache-2.0
/** What a directory of manifests holds, read once. Layer: lib/manifests. */
import { systemClock } from '../base/clock.ts'
import type { Problem, SourceEvent, SourceStatus } from '../store/source.ts'
import { DirectorySource } from './source.ts'

export interface DirectoryContent {
  readonly events: readonly SourceEvent[]
  /** what it has and we cannot use */
  readonly problems: readonly Problem[]
  /** why the directory could not be read; undefined: it was */
  readonly unavailable: string | undefined
}

/** As the agent reads it. Never rejects. */
export async function readDirectory(directory: string): Promise<DirectoryContent> {
  const stop = new AbortController()
  const events: SourceEvent[] = []
  let status: SourceStatus | undefined
  const source = new DirectorySource({ directory, clock: systemClock })
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
