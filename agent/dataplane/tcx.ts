// SPDX-License-Identifier: Apache-2.0
/** Hooks as tcx links, pinned so that they outlive the agent: kernels from 6.6 on. Layer: agent/dataplane. */
import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { BpfLink } from '#native'
import { errorCode } from '#lib/base/errors.ts'
import { hookKey, hookPin, parseHookPin, type Hook, type HookName, type Hooks, type LoadedProgram } from './hook.ts'

/** Keeps every link open: a stranger who removes a pin does not take the program off with it. */
export class TcxHooks implements Hooks, Disposable {
  readonly kind = 'tcx'
  readonly #dir: string
  readonly #links = new Map<string, BpfLink>()

  /** `dir` holds the pins and nothing else with names of ours */
  constructor(dir: string) {
    this.#dir = dir
  }

  read(hook: Hook): number | undefined {
    const link = this.#open(hook)
    if (link === undefined || !existsSync(this.#path(hook))) return undefined
    const { ifindex, programId } = link.info()
    return ifindex === hook.ifindex ? programId : undefined
  }

  write(hook: Hook, program: LoadedProgram): void {
    const link = this.#open(hook)
    const info = link?.info()
    if (link === undefined || info?.ifindex !== hook.ifindex) {
      this.clear(hook)
      this.#attach(hook, program)
      return
    }
    if (info.programId !== program.id) link.update(program.handle)
    if (!existsSync(this.#path(hook))) this.#pin(link, hook)
  }

  clear(name: HookName): void {
    rmSync(this.#path(name), { force: true })
    this.#links.get(hookKey(name))?.close()
    this.#links.delete(hookKey(name))
  }

  list(): HookName[] {
    if (!existsSync(this.#dir)) return []
    return readdirSync(this.#dir)
      .map(parseHookPin)
      .filter((name) => name !== undefined)
  }

  /** Lets go of the links; the pins keep them. */
  [Symbol.dispose](): void {
    for (const link of this.#links.values()) link.close()
    this.#links.clear()
  }

  #attach(hook: Hook, program: LoadedProgram): void {
    const link = BpfLink.attachTcx(program.handle, hook.ifindex, hook.direction)
    try {
      this.#pin(link, hook)
    } catch (thrown) {
      link.close()
      throw thrown
    }
    this.#links.set(hookKey(hook), link)
  }

  #pin(link: BpfLink, name: HookName): void {
    mkdirSync(this.#dir, { recursive: true })
    link.pin(this.#path(name))
  }

  #open(name: HookName): BpfLink | undefined {
    const known = this.#links.get(hookKey(name))
    if (known !== undefined) return known
    try {
      const link = BpfLink.openPin(this.#path(name))
      this.#links.set(hookKey(name), link)
      return link
    } catch (thrown) {
      if (errorCode(thrown) === 'ENOENT') return undefined
      throw thrown
    }
  }

  #path(name: HookName): string {
    return join(this.#dir, hookPin(name))
  }
}
