// SPDX-License-Identifier: Apache-2.0
/** What is in a folder that need not be there. Layer: agent/cni. */
import { readdirSync } from 'node:fs'
import { errorCode } from '#lib/base/errors.ts'

/** Names; none where there is no such folder. */
export function filesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
  } catch (thrown) {
    if (errorCode(thrown) === 'ENOENT') return []
    throw thrown
  }
}
