// SPDX-License-Identifier: Apache-2.0
/** The connect-time programs on the cgroup2 hierarchy: as pinned links, or by plain attachment before 5.7. Layer: agent/dataplane. */
import { existsSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { BpfLink, BpfProgram, cgroupAttach, cgroupDetach, cgroupQuery, type CgroupHook } from '#native'
import { errorCode } from '#lib/base/errors.ts'
import type { LoadedProgram } from './hook.ts'

export const CGROUP_HOOKS = ['connect4', 'connect6', 'sendmsg4', 'sendmsg6', 'recvmsg4', 'recvmsg6', 'getpeername4', 'getpeername6'] as const satisfies readonly CgroupHook[]

/** How programs get on a cgroup; everything throws the addon's errors as they are. */
export interface CgroupAttacher {
  /** id of our program that runs there and will outlive the agent */
  read(hook: CgroupHook): number | undefined
  write(hook: CgroupHook, program: LoadedProgram): void
  /** Takes every program of ours away; false when there was none. */
  clear(hook: CgroupHook): boolean
}

/** Pins are `<dir>/cgroup:<hook>`. */
export class CgroupLinks implements CgroupAttacher, Disposable {
  readonly #dir: string
  readonly #cgroup: string
  readonly #links = new Map<CgroupHook, BpfLink>()

  constructor(dir: string, cgroup: string) {
    this.#dir = dir
    this.#cgroup = cgroup
  }

  read(hook: CgroupHook): number | undefined {
    const link = this.#open(hook)
    if (link === undefined || !existsSync(this.#path(hook))) return undefined
    const { programId } = link.info()
    // a link says not on which cgroup it is, and it may have been detached
    return cgroupQuery(this.#cgroup, hook).includes(programId) ? programId : undefined
  }

  write(hook: CgroupHook, program: LoadedProgram): void {
    const link = this.#open(hook)
    if (link !== undefined && cgroupQuery(this.#cgroup, hook).includes(link.info().programId)) {
      if (link.info().programId !== program.id) link.update(program.handle)
      if (!existsSync(this.#path(hook))) this.#pin(link, hook)
      return
    }
    this.clear(hook)
    const fresh = BpfLink.attachCgroup(program.handle, this.#cgroup, hook)
    try {
      this.#pin(fresh, hook)
    } catch (thrown) {
      fresh.close()
      throw thrown
    }
    this.#links.set(hook, fresh)
  }

  clear(hook: CgroupHook): boolean {
    const there = this.#links.has(hook) || existsSync(this.#path(hook))
    rmSync(this.#path(hook), { force: true })
    this.#links.get(hook)?.close()
    this.#links.delete(hook)
    return there
  }

  /** Lets go of the links; the pins keep them. */
  [Symbol.dispose](): void {
    for (const link of this.#links.values()) link.close()
    this.#links.clear()
  }

  #pin(link: BpfLink, hook: CgroupHook): void {
    mkdirSync(this.#dir, { recursive: true })
    link.pin(this.#path(hook))
  }

  #open(hook: CgroupHook): BpfLink | undefined {
    const known = this.#links.get(hook)
    if (known !== undefined) return known
    try {
      const link = BpfLink.openPin(this.#path(hook))
      this.#links.set(hook, link)
      return link
    } catch (thrown) {
      if (errorCode(thrown) === 'ENOENT') return undefined
      throw thrown
    }
  }

  #path(hook: CgroupHook): string {
    return join(this.#dir, `cgroup:${hook}`)
  }
}

/** Recognises ours by the program's name, which is the hook's. There is no replacing: for a moment the old and the new program
 * run one after the other, which is harmless, as the second finds no service address any more. */
export class CgroupAttachments implements CgroupAttacher {
  readonly #cgroup: string

  constructor(cgroup: string) {
    this.#cgroup = cgroup
  }

  read(hook: CgroupHook): number | undefined {
    const ids = this.#ours(hook)
    // two of ours: an agent ended between attaching and detaching, so write again
    return ids.length === 1 ? ids[0] : undefined
  }

  write(hook: CgroupHook, program: LoadedProgram): void {
    const before = this.#ours(hook)
    if (!before.includes(program.id)) cgroupAttach(this.#cgroup, hook, program.handle)
    for (const id of before) if (id !== program.id) this.#detach(hook, id)
  }

  clear(hook: CgroupHook): boolean {
    const ids = this.#ours(hook)
    for (const id of ids) this.#detach(hook, id)
    return ids.length > 0
  }

  #ours(hook: CgroupHook): number[] {
    return cgroupQuery(this.#cgroup, hook).filter((id) => {
      const program = BpfProgram.openId(id)
      try {
        return program.info().name === hook
      } finally {
        program.close()
      }
    })
  }

  #detach(hook: CgroupHook, id: number): void {
    const program = BpfProgram.openId(id)
    try {
      cgroupDetach(this.#cgroup, hook, program)
    } finally {
      program.close()
    }
  }
}

/** The directory of the cgroup2 mount in the text of /proc/self/mounts; the first one when there are several. */
export function cgroup2Mount(mounts: string): string | undefined {
  for (const line of mounts.split('\n')) {
    const [, directory, type] = line.split(' ')
    if (type === 'cgroup2' && directory !== undefined) return directory.replaceAll('\\040', ' ')
  }
  return undefined
}
