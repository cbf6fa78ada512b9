// SPDX-License-Identifier: Apache-2.0
/** netplane-operator ask: which node ports answer the machine that it runs on. Layer: operator. */
import { systemClock } from '#lib/base/clock.ts'
import { answering } from './outside.ts'

export interface AskCommand {
  /** as they stand in a mark */
  readonly places: readonly string[]
  readonly patienceMs: number
}

/** Prints those that answer, a line each; returns the exit code. */
export async function askCommand({ places, patienceMs }: AskCommand): Promise<number> {
  const { signal } = new AbortController()
  const found = await answering(places, { clock: systemClock, patienceMs, signal })
  process.stdout.write(found.map((place) => `${place}\n`).join(''))
  return 0
}
