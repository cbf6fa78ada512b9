// SPDX-License-Identifier: Apache-2.0
/** What an upgrade is planned from: a server's version and its objects, from the server or from files. Layer: upgrade
 * (pure). */
import type { ApiObject } from '#lib/api/resource.ts'

export interface UpgradeFacts {
  /** "v1.34.4"; undefined: files do not say it */
  readonly serverVersion: string | undefined
  /** as the server has them: namespaces, nodes, pods, workloads, config maps, accounts, definitions, API services,
   * stored objects, our own. Of Secrets the metadata alone */
  readonly objects: readonly ApiObject[]
}
