// SPDX-License-Identifier: Apache-2.0
/** Hooks of interfaces as tcx links: kernels from 6.6 on. Layer: agent/dataplane. */
import { BpfLink } from '#native'
import { parseHookKey, type Hooks, type InterfaceHook, type LoadedProgram } from './hook.ts'
import type { LinkPins } from './link-pins.ts'
import type { Standbys } from './standbys.ts'

export class TcxHooks implements Hooks<InterfaceHook> {
  readonly kind = 'tcx'
  readonly #pins: LinkPins
  readonly #standbys: Standbys | undefined

  constructor(pins: LinkPins, standbys?: Standbys) {
    this.#pins = pins
    this.#standbys = standbys
  }

  read(hook: InterfaceHook): number | undefined {
    const link = this.#pins.get(hook.key)
    if (link === undefined || !this.#pins.isPinned(hook.key)) return undefined
    const { ifindex, programId } = link.info()
    return ifindex === hook.instance ? programId : undefined
  }

  write(hook: InterfaceHook, program: LoadedProgram): void {
    const link = this.#pins.get(hook.key)
    const info = link?.info()
    if (link === undefined || info?.ifindex !== hook.instance) {
      // the link is of an interface that is gone, or another process detached it
      this.#pins.drop(hook.key)
      // what stands by has taken over: a new link would come behind it, and both would run
      const standby = this.#standbys?.take(hook, program)
      this.#pins.put(hook.key, standby ?? BpfLink.attachTcx(program.handle, hook.instance, hook.direction))
      return
    }
    if (info.programId !== program.id) link.update(program.handle)
    if (!this.#pins.isPinned(hook.key)) this.#pins.put(hook.key, link)
  }

  clear(key: string): void {
    this.#pins.drop(key)
  }

  list(): string[] {
    return this.#pins.list().filter((key) => parseHookKey(key) !== undefined)
  }
}
