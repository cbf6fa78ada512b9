// SPDX-License-Identifier: Apache-2.0
/** The connect-time programs: on which cgroup, and by which means this kernel has. Layer: agent/dataplane. */
import { readFileSync } from 'node:fs'
import { UnsupportedError } from '#lib/base/errors.ts'
import type { Log } from '#lib/obs/log.ts'
import { Attachments, type WantedProgram } from './attachments.ts'
import { CGROUP_HOOKS, cgroup2Mount, cgroupPlace, type CgroupPlace } from './cgroup.ts'
import type { LoadedProgram } from './hook.ts'
import type { AllHooks } from './kernel-hooks.ts'
import { failure, NOTHING_DONE, type Outcome, type ReconcileStep } from '../reconcile/step.ts'

export interface SocketLbOptions {
  readonly hooks: Pick<AllHooks, 'cgroup'>
  readonly log: Log
}

/** Nothing is looked at before it is known which cgroup, if any, is wanted. */
export class SocketLb {
  readonly writes: ReconcileStep = {
    name: 'connect',
    pending: () => this.#problem !== undefined || this.#attachments?.writes.pending() === true,
    apply: () => this.#write(),
  }
  readonly removals: ReconcileStep = {
    name: 'connect.remove',
    pending: () => this.#attachments?.removals.pending() === true,
    apply: () => this.#attachments?.removals.apply() ?? NOTHING_DONE,
  }
  readonly #options: SocketLbOptions
  #cgroup: string | undefined
  /** the means of attaching was found by trying, not by what is there */
  #tried = false
  #attachments: Attachments<CgroupPlace> | undefined
  #problem: unknown

  constructor(options: SocketLbOptions) {
    this.#options = options
  }

  get adopted(): number {
    return this.#attachments?.adopted ?? 0
  }

  get settled(): number {
    return this.#attachments?.settled ?? 0
  }

  get complete(): boolean {
    return this.#attachments?.complete !== false
  }

  /** `programs` by hook, none when they are not wanted; `cgroup` undefined: the first cgroup2 mount. */
  setDesired(programs: ReadonlyMap<string, LoadedProgram>, cgroup: string | undefined): void {
    const wanted = CGROUP_HOOKS.flatMap((hook): WantedProgram<CgroupPlace>[] => {
      const program = programs.get(hook)
      return program === undefined ? [] : [{ place: cgroupPlace(hook), program }]
    })
    try {
      this.#problem = undefined
      const directory = cgroup ?? cgroup2Mount(readFileSync('/proc/self/mounts', 'utf8'))
      if (directory !== this.#cgroup || (!this.#tried && wanted.length > 0)) this.#move(directory, wanted)
      if (wanted.length > 0 && directory === undefined)
        throw new UnsupportedError(
          'cgroup2',
          'no cgroup2 file system is mounted: connections of this node’s own processes to services are not balanced',
        )
      this.#attachments?.setDesired(wanted)
    } catch (thrown) {
      this.#problem = thrown
    }
  }

  check(): string[] {
    return (this.#attachments?.check() ?? []).map(({ key }) => key)
  }

  #write(): Outcome {
    if (this.#problem !== undefined) return { done: 0, failures: [failure('cgroup', this.#problem)] }
    return this.#attachments?.writes.apply() ?? NOTHING_DONE
  }

  #move(directory: string | undefined, wanted: readonly WantedProgram<CgroupPlace>[]): void {
    if (directory !== this.#cgroup) {
      this.#attachments?.setDesired([])
      this.#attachments?.removals.apply()
    }
    this.#attachments =
      directory === undefined
        ? undefined
        : new Attachments({ name: 'connect', hooks: this.#options.hooks.cgroup(directory, wanted[0]), log: this.#options.log })
    this.#cgroup = directory
    this.#tried = directory !== undefined && wanted.length > 0
  }
}
