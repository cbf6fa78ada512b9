// SPDX-License-Identifier: Apache-2.0
/** Where a source's events go: into the store, pods as this node has them. Layer: agent. */
import { isPodEvent, type Sink } from '#lib/store/source.ts'
import type { PodOverlaySink } from '../cni/pod-overlay-sink.ts'

export interface NodeSinkOptions {
  /** the source's, of the store */
  readonly sink: Sink
  readonly pods: Pick<PodOverlaySink, 'passOn' | 'changed'>
  /** called when the source has sent all objects, before the store acts on them */
  readonly beforeSynced: () => void
}

export function nodeSink({ sink, pods, beforeSynced }: NodeSinkOptions): Sink {
  return {
    apply: (events) => {
      sink.apply(events.map((event) => (isPodEvent(event) ? pods.passOn(event) : event)))
      pods.changed.notify()
    },
    synced: () => {
      beforeSynced()
      sink.synced()
    },
    status: (status) => {
      sink.status(status)
    },
  }
}
