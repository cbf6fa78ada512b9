// SPDX-License-Identifier: Apache-2.0
/** Waiting for something that happens by itself, with a bound. Layer: testkit. */
import { setTimeout } from 'node:timers/promises'

/** Settles as soon as the condition holds; throws after `ms`, saying what was waited for. */
export async function until(what: string, holds: () => boolean, ms = 20_000): Promise<void> {
  const end = performance.now() + ms
  while (!holds()) {
    if (performance.now() > end) throw new Error(`waited ${ms} ms for ${what}`)
    await setTimeout(2)
  }
}
