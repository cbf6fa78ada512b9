// SPDX-License-Identifier: Apache-2.0
/** What a command prints, whatever reads it. Layer: cli. */
import { once } from 'node:events'

/** Waits while the reader of a pipe is slower. */
export async function write(output: string | Uint8Array): Promise<void> {
  if (!process.stdout.write(output)) await once(process.stdout, 'drain')
}
