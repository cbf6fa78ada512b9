// SPDX-License-Identifier: Apache-2.0
/** Hooks of interfaces as filters at clsact queueing disciplines: kernels without tcx. Layer: agent/dataplane. */
import { tcAttach, tcCreateHook, tcDetach, tcQuery, type Direction, type TcFilter } from '#native'
import { AttachError } from '#lib/base/errors.ts'
import type { Interfaces } from '#agent/interfaces/table.ts'
import { foundProgram, type FoundProgram } from './found-program.ts'
import { DIRECTIONS, interfaceHook, parseHookKey, type Hooks, type InterfaceHook, type LoadedProgram } from './hook.ts'

/** Where our filters are: with the program's name that is how they are recognised. Other data planes have programs of
 * like names. */
const PLACE = { handle: 1, priority: 1 } as const
export const PACKET_PROGRAM = /^(from|to)_(host|workload)$/
/** Of no name that removals of the others would find: it stays as long as its device. */
export const DROP_PROGRAM = /^drop_tunnel$/

/** Filters live as long as their interface, so there is nothing to pin or to hold. */
export class ClsactHooks implements Hooks<InterfaceHook> {
  readonly kind = 'clsact'
  readonly #interfaces: Pick<Interfaces, 'all' | 'byName'>
  readonly #ours: RegExp

  private constructor(interfaces: Pick<Interfaces, 'all' | 'byName'>, ours: RegExp) {
    this.#interfaces = interfaces
    this.#ours = ours
  }

  /** The programs of packets. */
  static ofPackets(interfaces: Pick<Interfaces, 'all' | 'byName'>): ClsactHooks {
    return new ClsactHooks(interfaces, PACKET_PROGRAM)
  }

  /** The one that drops all, on kernels with tcx as well: it needs no pin. */
  static ofDrop(interfaces: Pick<Interfaces, 'all' | 'byName'>): ClsactHooks {
    return new ClsactHooks(interfaces, DROP_PROGRAM)
  }

  read(hook: InterfaceHook): number | undefined {
    const found = this.#query(hook.instance, hook.direction)
    return found?.ours === true ? found.id : undefined
  }

  write(hook: InterfaceHook, program: LoadedProgram): void {
    const found = this.#query(hook.instance, hook.direction)
    if (found?.ours === false)
      throw new AttachError(hook.key, `the filter with handle 1, priority 1 is another's: program ${found.id} ${found.name}`)
    tcCreateHook(hook.instance)
    tcAttach(filter(hook.instance, hook.direction), program.handle)
  }

  clear(key: string): void {
    const name = parseHookKey(key)
    const iface = name === undefined ? undefined : this.#interfaces.byName(name.iface)
    if (name === undefined || iface === undefined) return
    if (this.#query(iface.index, name.direction)?.ours === true) tcDetach(filter(iface.index, name.direction))
  }

  list(): string[] {
    return this.#interfaces
      .all()
      .flatMap((iface) => DIRECTIONS.map((direction) => interfaceHook(iface, direction)))
      .filter((hook) => this.#query(hook.instance, hook.direction)?.ours === true)
      .map((hook) => hook.key)
  }

  #query(ifindex: number, direction: Direction): FoundProgram | undefined {
    return foundProgram(() => tcQuery(filter(ifindex, direction)), this.#ours)
  }
}

function filter(ifindex: number, direction: Direction): TcFilter {
  return { ...PLACE, ifindex, direction }
}
