// SPDX-License-Identifier: Apache-2.0
/** Hooks as filters at clsact queueing disciplines: kernels without tcx. Layer: agent/dataplane. */
import { BpfProgram, tcAttach, tcCreateHook, tcDetach, tcQuery, type Direction, type TcFilter } from '#native'
import { AttachError, errorCode } from '#lib/base/errors.ts'
import type { Interfaces } from '#agent/interfaces/table.ts'
import { hookKey, type Hook, type HookName, type Hooks, type LoadedProgram } from './hook.ts'

/** Where our filters are: with the program's name that is how they are recognised. */
const PLACE = { handle: 1, priority: 1 } as const
const DIRECTIONS = ['ingress', 'egress'] as const
const OUR_PROGRAM = /^(np_|from_|to_)/

/** Filters live as long as their interface, so there is nothing to pin or to hold. */
export class ClsactHooks implements Hooks {
  readonly kind = 'clsact'
  readonly #interfaces: Interfaces

  constructor(interfaces: Interfaces) {
    this.#interfaces = interfaces
  }

  read(hook: Hook): number | undefined {
    const found = query(hook)
    return found?.ours === true ? found.id : undefined
  }

  write(hook: Hook, program: LoadedProgram): void {
    const found = query(hook)
    if (found?.ours === false) throw new AttachError(hookKey(hook), `the filter with handle 1, priority 1 is somebody else's: program ${found.id} ${found.name}`)
    tcCreateHook(hook.ifindex)
    tcAttach(filter(hook), program.handle)
  }

  clear(name: HookName): void {
    const ifindex = this.#interfaces.byName(name.iface)?.index
    if (ifindex === undefined) return
    const hook = { ...name, ifindex }
    if (query(hook)?.ours === true) tcDetach(filter(hook))
  }

  list(): HookName[] {
    return this.#interfaces.all().flatMap(({ name, index }) =>
      DIRECTIONS.filter((direction) => query({ direction, ifindex: index })?.ours === true).map((direction) => ({ iface: name, direction })),
    )
  }
}

function filter(hook: { readonly ifindex: number; readonly direction: Direction }): TcFilter {
  return { ...PLACE, ifindex: hook.ifindex, direction: hook.direction }
}

/** Undefined when there is no such filter, hook or interface. */
function query(hook: { readonly ifindex: number; readonly direction: Direction }): { id: number; name: string; ours: boolean } | undefined {
  try {
    const id = tcQuery(filter(hook))
    if (id === undefined) return undefined
    const program = BpfProgram.openId(id)
    try {
      const { name } = program.info()
      return { id, name, ours: OUR_PROGRAM.test(name) }
    } finally {
      program.close()
    }
  } catch (thrown) {
    if (errorCode(thrown) === 'ENODEV' || errorCode(thrown) === 'ENOENT' || errorCode(thrown) === 'EINVAL') return undefined
    throw thrown
  }
}
