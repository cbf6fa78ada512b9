// SPDX-License-Identifier: Apache-2.0
/** The oldest API server that takes our kinds. Layer: lib/preflight (pure). */
import { compareVersions, parseVersion } from '../base/text/version.ts'

/** Conditions on prefixes in our definitions need it. */
export const OLDEST_SERVER = '1.31'

/** Also where `version` is none. */
export function isOldServer(version: string): boolean {
  const [server, oldest] = [version, OLDEST_SERVER].map(parseVersion)
  return server === undefined || oldest === undefined || compareVersions(server, oldest) < 0
}
