// SPDX-License-Identifier: Apache-2.0
/** Resyncs with the kernel, and checks of the clock, that no event asks for. Layer: agent. */
import { everyMs, systemClock } from '#lib/base/clock.ts'
import type { Health } from '#lib/obs/health.ts'
import type { Periods } from '../config/config.ts'
import { TABLES } from '../dataplane/generation-tables.ts'
import { limitYoung } from '../node/memory.ts'
import type { Task } from '#lib/base/async/task-group.ts'
import type { DataplaneSetup } from '../run/dataplane-setup.ts'

/** How often it is asked whether a comparison with the kernel is due. */
const TICK_MS = 250
/** for what is not due so often */
const SECOND_MS = 1000
/** In which time every table is read back once, one after the other. */
const TABLES_MS = 60_000
/** No apply takes so long: loading programs, the longest part of one, takes seconds. */
const STUCK_MS = 120_000

/** Each until its signal aborts. */
export function resyncTimers(
  { dataplane, loop }: DataplaneSetup,
  { health, periods }: { readonly health: Health; readonly periods: () => Periods },
): Task[] {
  let next = 0
  const [hooksDue, routesDue] = [due(() => periods().hooks), due(() => periods().routes)]
  const every =
    (ms: number, run: () => void): Task =>
    (signal) =>
      everyMs(systemClock, { ms, signal, run })
  return [
    every(TICK_MS, () => {
      if (hooksDue() && dataplane.checkHooks()) loop.mark()
    }),
    every(SECOND_MS, () => {
      if (dataplane.isReady) limitYoung()
      if (loop.busyMs < STUCK_MS) health.pass('apply.moves')
      else health.fail('apply.moves', `one apply has been running for ${Math.round(loop.busyMs / 1000)} s`)
    }),
    every(TABLES_MS / TABLES.length, () => {
      const name = TABLES[next++ % TABLES.length]
      if (name !== undefined) dataplane.checkTable(name)
      loop.mark()
    }),
    every(SECOND_MS, () => {
      if (!routesDue()) return
      dataplane.checkRoutes()
      loop.mark()
    }),
  ]
}

/** True when so much time has passed since it was last true; a changed period holds from the next question on. */
function due(periodMs: () => number): () => boolean {
  let last = systemClock.now()
  return () => {
    // a tick may come a little early
    if (systemClock.now() - last < periodMs() - TICK_MS / 2) return false
    last = systemClock.now()
    return true
  }
}
