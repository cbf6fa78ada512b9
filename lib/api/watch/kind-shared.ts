// SPDX-License-Identifier: Apache-2.0
/** What the kinds of one source share, and what is counted of each. Layer: lib/api. */
import type { Backoff } from '../../base/backoff.ts'
import type { Clock } from '../../base/clock.ts'
import type { SourceEvent } from '../../store/source.ts'
import type { ApiClient } from '../client.ts'
import type { ObjectCache } from './object-cache.ts'
import type { Reconnect } from './reconnect.ts'
import type { VersionHistory } from './version-history.ts'
import type { ApiDiscovery } from './api-discovery.ts'
import type { Semaphore } from '../../base/async/semaphore.ts'
import type { WatchedKind } from './watch-list.ts'

export interface Patience {
  /** a page that takes longer does not come */
  readonly pageMs: number
  /** for a watch to begin, and to end when it is due */
  readonly graceMs: number
}

/** What the kinds of one source share. */
export interface Shared {
  readonly client: ApiClient
  readonly clock: Clock
  readonly held: ObjectCache
  readonly link: Reconnect
  readonly presence: ApiDiscovery
  readonly past: VersionHistory
  /** of lists: pages are large */
  readonly turns: Semaphore
  readonly backoff: Backoff
  /** how long a kind is not asked for that the server does not have */
  readonly absentMs: number
  /** how long a watch lasts, in s, before another one is asked for */
  readonly watchSeconds: number
  readonly patience: Patience
  readonly emit: (events: readonly SourceEvent[]) => void
  /** it, or the server, had failed and is heard again */
  readonly onHeard: () => void
  /** all objects of the kind are in, or there is no such kind: perhaps again */
  readonly onListed: (watched: WatchedKind) => void
  /** the server was found at a version before one that it has sent: all kinds are to look whether theirs is one of
   * its past */
  readonly onWentBack: (version: string) => void
  /** the status may be another one */
  readonly onStatus: () => void
}

export interface KindFacts {
  readonly objects: number
  readonly lists: number
  readonly watches: number
  readonly events: number
  /** how often it was asked for as JSON because what came otherwise could not be read: once at the most */
  readonly unreadable: number
  /** ms since 1970; undefined when there was none */
  readonly lastEventAt: number | undefined
}
