// SPDX-License-Identifier: Apache-2.0
/** The cgroups of one run: by them it is slowed down, stopped as a whole, and ended. Layer: test. */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { killCgroup, removeCgroup } from '../../lab/processes/cgroup.ts'

const ROOT = '/sys/fs/cgroup'
const PERIOD_US = 100_000
const ENTER = 'for dir in "$1" "$2"; do echo $$ > "$dir/cgroup.procs"; done; shift 2; exec "$@"'

/** Why there can be none here; undefined: there can. Labs have places of their own in cgroup2, so that there a run
 * would not be in one group. */
export function runGroupObstacle(root = ROOT): string | undefined {
  const missing = ['cpu', 'freezer'].filter((name) => !existsSync(join(root, name)))
  return missing.length === 0 ? undefined : `there is no ${missing.map((name) => join(root, name)).join(', no ')}: cgroups v1 are needed`
}

export class RunGroup implements AsyncDisposable {
  readonly #cpu = join(ROOT, 'cpu', `netplane-steady-${process.pid}`)
  readonly #freezer = join(ROOT, 'freezer', `netplane-steady-${process.pid}`)

  constructor() {
    for (const folder of [this.#cpu, this.#freezer]) mkdirSync(folder)
  }

  /** In front of a command that is to be in it. */
  get prefix(): readonly string[] {
    return ['sh', '-c', ENTER, 'sh', this.#cpu, this.#freezer]
  }

  /** A part of one processor's time for all of it. */
  limit(processors: number): void {
    writeFileSync(join(this.#cpu, 'cpu.cfs_period_us'), String(PERIOD_US))
    writeFileSync(join(this.#cpu, 'cpu.cfs_quota_us'), String(processors * PERIOD_US))
  }

  /** As when the machine gives its processors to another one. No process gets a signal: those that a test has stopped
   * itself stay stopped. */
  stop(): void {
    writeFileSync(join(this.#freezer, 'freezer.state'), 'FROZEN')
  }

  resume(): void {
    writeFileSync(join(this.#freezer, 'freezer.state'), 'THAWED')
  }

  /** Ends what is left in it. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.resume()
    const left = [...(await killCgroup(this.#cpu)), ...(await killCgroup(this.#freezer))]
    if (left.length > 0) throw new Error(`still there: ${left.join(', ')}`)
    for (const folder of [this.#cpu, this.#freezer]) await removeCgroup(folder)
  }
}
