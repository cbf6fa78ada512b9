// SPDX-License-Identifier: Apache-2.0
/** Asks the cluster whether this program is too old to read it. Layer: cli. */
import type { ApiClient } from '#lib/api/client.ts'
import { isRefused } from '#lib/api/errors.ts'
import { packageVersion } from '#lib/base/os/package.ts'
import { clusterInformation } from '#lib/control/cluster-version.ts'
import { guardReads } from './guard.ts'

/** A warning, or undefined. Rejects where this program is too old. An account may have rights to nothing but what it
 * asks for. */
export async function mayRead(client: ApiClient, allowMismatch: boolean): Promise<string | undefined> {
  try {
    return guardReads({ cluster: await clusterInformation(client), version: packageVersion(), allowMismatch })
  } catch (thrown) {
    if (!isRefused(thrown, 'Forbidden')) throw thrown
    return `the version of the cluster is not known: ${thrown.said}`
  }
}
