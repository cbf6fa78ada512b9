// SPDX-License-Identifier: Apache-2.0
/** What a directory of manifests holds, read once. Layer: lib/manifests. */
import { systemClock } from '../base/clock.ts'
import { readOnce, type SourceContent } from '../store/read-once.ts'
import { DirectorySource } from './source.ts'

/** As the agent reads it. Never rejects. */
export async function readDirectory(directory: string): Promise<SourceContent> {
  return await readOnce(new DirectorySource({ directory, clock: systemClock }))
}
