// SPDX-License-Identifier: Apache-2.0
/** Whether this program may read and change this cluster: not one of another version, and not change a locked one.
 * Layer: cli. */
import { NetplaneError } from '#lib/base/errors.ts'
import type { ClusterInformationSpec } from '#lib/kube/objects/cluster-information.ts'

/** The cluster is not to be written to, or not to be read by this program. */
export class ClusterRefusedError extends NetplaneError {
  readonly code = 'CLUSTER_REFUSED'

  constructor(message: string) {
    super({ message })
  }
}

export interface ReadInput {
  /** undefined: the cluster has none */
  readonly cluster: Partial<ClusterInformationSpec> | undefined
  /** of this program: "3.31.5" */
  readonly version: string
  readonly allowMismatch: boolean
}

export interface GuardInput extends ReadInput {
  /** only ClusterInformation is written, which has the lock itself */
  readonly isAboutLock: boolean
}

/** Objects of an older cluster are understood. A warning, or undefined. Throws ClusterRefusedError. */
export function guardReads(input: ReadInput): string | undefined {
  return compareVersions(input, isOlderMinor)
}

/** A warning, or undefined. Throws ClusterRefusedError. */
export function guardWrites(input: GuardInput): string | undefined {
  const { cluster, isAboutLock } = input
  const warning = compareVersions(input, (ours, theirs) => ours.minor !== theirs.minor)
  if (cluster?.datastoreReady === false && !isAboutLock)
    throw new ClusterRefusedError(
      'the datastore is locked: datastoreReady of ClusterInformation default is false, and nothing is written until it is true',
    )
  return warning
}

interface Parts {
  /** "3.31" */
  readonly minor: string
  /** "3.31.5" */
  readonly whole: string
}

/** What stands behind a "-" is of a build. */
function partsOf(version: string): Parts {
  const whole = version.replace(/^v/, '').replace(/-.*/, '')
  return { whole, minor: whole.split('.').slice(0, 2).join('.') }
}

function isOlderMinor(ours: Parts, theirs: Parts): boolean {
  const [[ourMajor = 0, ourMinor = 0], [major = 0, minor = 0]] = [numbersOf(ours), numbersOf(theirs)]
  return ourMajor === major ? ourMinor < minor : ourMajor < major
}

function numbersOf({ minor }: Parts): readonly number[] {
  return minor.split('.').map(Number)
}

function compareVersions(
  { cluster, version, allowMismatch }: ReadInput,
  isRefused: (ours: Parts, theirs: Parts) => boolean,
): string | undefined {
  if (cluster?.netplaneVersion === undefined || allowMismatch) return undefined
  const [ours, theirs] = [partsOf(version), partsOf(cluster.netplaneVersion)]
  if (ours.whole === theirs.whole) return undefined
  const both = `netplanectl is v${ours.whole}, the cluster v${theirs.whole}`
  if (!isRefused(ours, theirs)) return `versions differ: ${both}`
  throw new ClusterRefusedError(`version mismatch: ${both}. Take the cluster's netplanectl. Use --allow-version-mismatch to override`)
}
