// SPDX-License-Identifier: Apache-2.0
/** What an administrator says of the cluster as a whole: whether our objects may be written. Layer: lib/model. */
import type { Snapshot } from './snapshot.ts'

export interface ClusterInformation {
  readonly kind: 'ClusterInformation'
  readonly namespace: ''
  readonly name: string
  /** false: the datastore is locked */
  readonly datastoreReady: boolean
}

/** Why no object of ours may be written; undefined: they may, as in a cluster that says nothing of it. */
export function whyLocked({ clusterInformations }: Pick<Snapshot, 'clusterInformations'>): string | undefined {
  return clusterInformations.get('default')?.datastoreReady === false ? LOCKED : undefined
}

export const LOCKED = 'the datastore is locked: ClusterInformation default has datastoreReady: false'
