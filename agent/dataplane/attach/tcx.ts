// SPDX-License-Identifier: Apache-2.0
/** Hooks of interfaces as tcx links: kernels from 6.6 on. Layer: agent/dataplane. */
import { BpfLink, tcxQuery } from '#native'
import { errorCode } from '#lib/base/errors.ts'
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

/** The loopback device has this index in every network namespace. */
const LOOPBACK = 1

/** What a kernel says that does not know the hook, or not all of the question's fields. */
const UNKNOWN: ReadonlySet<string | undefined> = new Set(['EINVAL', 'E2BIG', 'ENOTSUP', 'EOPNOTSUPP'])

/** True when the kernel knows tcx: asks which programs are attached to the loopback device. */
export function hasTcx(): boolean {
  try {
    tcxQuery(LOOPBACK, 'ingress')
    return true
  } catch (thrown) {
    if (UNKNOWN.has(errorCode(thrown))) return false
    throw thrown
  }
}
