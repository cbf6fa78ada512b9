// SPDX-License-Identifier: Apache-2.0
/** What a source of objects is to the store: one stream of events, a synced mark, and what is wrong.
 * Layer: lib/store. */
import type { Rejected } from '../base/result.ts'
import type { Pod } from '../model/pod.ts'
import type { Ref } from '../model/ref.ts'
import type { KubeObject } from '../model/snapshot.ts'

export type SourceEvent = { readonly kind: 'upsert'; readonly object: KubeObject } | { readonly kind: 'delete'; readonly ref: Ref }

export type PodEvent =
  { readonly kind: 'upsert'; readonly object: Pod } | { readonly kind: 'delete'; readonly ref: Ref & { readonly kind: 'Pod' } }

export function isPodEvent(event: SourceEvent): event is PodEvent {
  return (event.kind === 'upsert' ? event.object : event.ref).kind === 'Pod'
}

/** Something in the source that is not used, or only in part. */
export interface Problem {
  /** "services.yaml:12"; undefined where there are no places */
  readonly place: string | undefined
  readonly rejected: Rejected
  /** the rest of the object is used */
  readonly inPart?: true
}

/** How the source is doing; its last good objects stay in force whatever this says. */
export interface SourceStatus {
  /** why the source itself cannot be read at present, and since when (ms since 1970); undefined: all is well */
  readonly unavailable: { readonly reason: string; readonly since: number } | undefined
  /** everything that is wrong with its content at present, in a stable order */
  readonly problems: readonly Problem[]
  /** refs of objects in force that the source cannot read at present: their last good versions stand */
  readonly kept?: readonly string[]
}

/** Where a source puts what it finds. */
export interface Sink {
  /** in order; deleting what is not there does nothing */
  apply(events: readonly SourceEvent[]): void
  /** everything there was at the start has been applied; once */
  synced(): void
  /** the whole status, whenever it is another one */
  status(status: SourceStatus): void
}

export interface Source {
  readonly name: string
  /** Feeds the sink until the signal aborts; settles then. Rejects only when it can never work. */
  run(sink: Sink, signal: AbortSignal): Promise<void>
}
