// SPDX-License-Identifier: Apache-2.0
/** Waiting for something that happens by itself, with a bound. Layer: testkit. */
import { waitFor } from '../../lab/wait.ts'
import { HANG_MS } from './hang.ts'

/** Settles as soon as the condition holds; throws after `ms`, saying what was waited for. */
export async function until(what: string, holds: () => boolean, ms = HANG_MS): Promise<void> {
  const held = await waitFor(() => (holds() ? true : undefined), { timeoutMs: ms, everyMs: 2 })
  if (held === undefined) throw new Error(`waited ${ms} ms for ${what}`)
}
