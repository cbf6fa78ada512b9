// SPDX-License-Identifier: Apache-2.0
/** The connect-time hooks of a cgroup2 directory: as pinned links, or by plain attachment before 5.7.
 * Layer: agent/dataplane. */
import { existsSync, statfsSync } from 'node:fs'
import { BpfLink, BpfProgram, cgroupAttach, cgroupDetach, cgroupQuery, type CgroupHook } from '#native'
import { errorCode } from '#lib/base/errors.ts'
import type { Hooks, LoadedProgram, Place } from './hook.ts'
import type { LinkPins } from './link-pins.ts'

export const CGROUP_HOOKS = [
  'connect4',
  'connect6',
  'sendmsg4',
  'sendmsg6',
  'recvmsg4',
  'recvmsg6',
  'getpeername4',
  'getpeername6',
  'sock_ops',
] as const satisfies readonly CgroupHook[]

const PREFIX = 'cgroup/'
const CGROUP2_MAGIC = 0x63677270

export interface CgroupPlace extends Place {
  readonly hook: CgroupHook
}

export function cgroupPlace(hook: CgroupHook): CgroupPlace {
  return { key: `${PREFIX}${hook}`, instance: 0, hook }
}

export class CgroupLinks implements Hooks<CgroupPlace> {
  readonly kind = 'cgroup link'
  readonly #pins: LinkPins
  readonly #cgroup: string

  constructor(pins: LinkPins, cgroup: string) {
    this.#pins = pins
    this.#cgroup = cgroup
  }

  read(place: CgroupPlace): number | undefined {
    const link = this.#pins.get(place.key)
    if (link === undefined || !this.#pins.isPinned(place.key)) return undefined
    const { programId } = link.info()
    return this.#runs(place, programId) ? programId : undefined
  }

  write(place: CgroupPlace, program: LoadedProgram): void {
    const link = this.#pins.get(place.key)
    const before = link?.info().programId
    if (link === undefined || before === undefined || !this.#runs(place, before)) {
      this.#pins.drop(place.key)
      this.#pins.put(place.key, BpfLink.attachCgroup(program.handle, this.#cgroup, place.hook))
      return
    }
    if (before !== program.id) link.update(program.handle)
    if (!this.#pins.isPinned(place.key)) this.#pins.put(place.key, link)
  }

  clear(key: string): void {
    this.#pins.drop(key)
  }

  list(): string[] {
    return this.#pins.list().filter((key) => key.startsWith(PREFIX))
  }

  /** A link does not say on which cgroup it is, nor whether it was detached. */
  #runs(place: CgroupPlace, programId: number): boolean {
    return cgroupQuery(this.#cgroup, place.hook).includes(programId)
  }
}

/** Recognises ours by the program's name, which is the hook's. There is no replacing: for a moment the old and the
 * new program run one after the other, which is harmless, as the second finds no service address any more. */
export class CgroupAttachments implements Hooks<CgroupPlace> {
  readonly kind = 'cgroup'
  readonly #cgroup: string

  constructor(cgroup: string) {
    this.#cgroup = cgroup
  }

  read(place: CgroupPlace): number | undefined {
    const ids = this.#ours(place.hook)
    // two of ours: an agent ended between attaching and detaching, so write again
    return ids.length === 1 ? ids[0] : undefined
  }

  write(place: CgroupPlace, program: LoadedProgram): void {
    const before = this.#ours(place.hook)
    if (!before.includes(program.id)) cgroupAttach(this.#cgroup, place.hook, program.handle)
    for (const id of before) if (id !== program.id) this.#detach(place.hook, id)
  }

  clear(key: string): void {
    const hook = CGROUP_HOOKS.find((one) => cgroupPlace(one).key === key)
    if (hook !== undefined) for (const id of this.#ours(hook)) this.#detach(hook, id)
  }

  list(): string[] {
    return CGROUP_HOOKS.filter((hook) => this.#ours(hook).length > 0).map((hook) => cgroupPlace(hook).key)
  }

  #ours(hook: CgroupHook): number[] {
    return this.#query(hook).filter((id) => {
      const program = BpfProgram.openId(id)
      try {
        return program.info().name === hook
      } finally {
        program.close()
      }
    })
  }

  /** A kernel without the hook has nothing there. */
  #query(hook: CgroupHook): number[] {
    try {
      return cgroupQuery(this.#cgroup, hook)
    } catch (thrown) {
      if (errorCode(thrown) === 'EINVAL') return []
      throw thrown
    }
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

export function isCgroup2(folder: string): boolean {
  return existsSync(folder) && statfsSync(folder).type === CGROUP2_MAGIC
}

/** The directory of the cgroup2 mount in the text of /proc/self/mounts; the first one when there are several. */
export function cgroup2Mount(mounts: string): string | undefined {
  for (const line of mounts.split('\n')) {
    const [, directory, type] = line.split(' ')
    if (type === 'cgroup2' && directory !== undefined) return directory.replaceAll('\\040', ' ')
  }
  return undefined
}
