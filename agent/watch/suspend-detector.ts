// SPDX-License-Identifier: Apache-2.0
/** Notices that this process was not running for a while: stopped, frozen with its container, or suspended with its
 * machine. Layer: agent.
 *
 * Timers and the programs' clock (CLOCK_MONOTONIC) stand still in suspend, CLOCK_BOOTTIME goes on; while a process
 * is stopped both go on, and it uses no CPU. Either way the world has changed unheard: connections are dead, events
 * were lost. */
import { everyMs, type Clock } from '#lib/base/clock.ts'

/** For how long, by reason. */
export interface Absence {
  readonly stoppedMs: number
  readonly suspendedMs: number
}

export interface SuspendDetectorOptions {
  readonly clock: Clock
  /** ms since the machine started, with what it was suspended */
  readonly uptimeMs: () => number
  /** ms of CPU time of this process so far */
  readonly cpuMs: () => number
  readonly onAwake: (absence: Absence) => void
}

const TICK_MS = 1000
/** Less is a busy machine, and nothing that a connection would not live through. */
const STOPPED_MS = 5000
/** The two clocks are read one after the other, the uptime in hundredths of a second. */
const SUSPENDED_MS = 1000
/** What is done on waking costs a starved process more of the time that it lacks. */
const STOPPED_AGAIN_MS = 60_000

export class SuspendDetector {
  readonly #options: SuspendDetectorOptions
  #earliest = -Infinity
  /** not yet reported */
  #stoppedMs = 0
  #last: { readonly now: number; readonly uptime: number; readonly cpu: number }

  constructor(options: SuspendDetectorOptions) {
    this.#options = options
    this.#last = this.#look()
  }

  async run(signal: AbortSignal): Promise<void> {
    await everyMs(this.#options.clock, {
      ms: TICK_MS,
      signal,
      run: () => {
        this.tick()
      },
    })
  }

  /** To be called every second. */
  tick(): void {
    const before = this.#last
    const after = this.#look()
    this.#last = after
    const ran = after.now - before.now
    const suspendedMs = after.uptime - before.uptime - ran
    // one that worked all the time is busy, and hears what it has missed by itself
    const stoppedMs = ran - TICK_MS - (after.cpu - before.cpu)
    if (stoppedMs >= STOPPED_MS) this.#stoppedMs += Math.round(stoppedMs)
    const isDue = this.#stoppedMs > 0 && after.now >= this.#earliest
    if (!isDue && suspendedMs < SUSPENDED_MS) return
    this.#earliest = after.now + STOPPED_AGAIN_MS
    const absence = { stoppedMs: this.#stoppedMs, suspendedMs: Math.max(0, Math.round(suspendedMs)) }
    this.#stoppedMs = 0
    this.#options.onAwake(absence)
  }

  #look() {
    const { clock, uptimeMs, cpuMs } = this.#options
    return { now: clock.now(), uptime: uptimeMs(), cpu: cpuMs() }
  }
}
