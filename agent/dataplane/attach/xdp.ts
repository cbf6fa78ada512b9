// SPDX-License-Identifier: Apache-2.0
/** XDP programs of interfaces: in the driver where it can, else before the kernel's own receive path. They stay with
 * their interface, so there is nothing to pin or to hold. Layer: agent/dataplane. */
import { xdpAttach, xdpQuery, type BpfProgram } from '#native'
import { AttachError } from '#lib/base/errors.ts'
import type { Interfaces } from '#agent/interfaces/table.ts'
import type { Log } from '#lib/obs/log.ts'
import { Attachments, type WantedProgram } from './attachments.ts'
import { foundProgram, type FoundProgram } from './found-program.ts'
import type { Hooks, LoadedProgram, Place } from './hook.ts'
import type { ReconcileStep } from '../reconcile/step.ts'

/** By this name our program is recognised. */
export const XDP_PROGRAM = /^untracked$/
/** XDP_FLAGS_SKB_MODE */
const GENERIC = 2

/** `instance` is the interface's index. */
export function xdpPlace(iface: { readonly name: string; readonly index: number }): Place {
  return { key: `${iface.name}/xdp`, instance: iface.index }
}

export class XdpHooks implements Hooks<Place> {
  readonly kind = 'xdp'
  readonly #interfaces: Pick<Interfaces, 'all' | 'byName'>

  constructor(interfaces: Pick<Interfaces, 'all' | 'byName'>) {
    this.#interfaces = interfaces
  }

  read(place: Place): number | undefined {
    const found = query(place.instance)
    return found?.ours === true ? found.id : undefined
  }

  write(place: Place, program: LoadedProgram): void {
    const found = query(place.instance)
    if (found?.ours === false) throw new AttachError(place.key, `there is another's: program ${found.id} ${found.name}`)
    attach(place.instance, program.handle)
  }

  clear(key: string): void {
    const iface = this.#interfaces.byName(key.slice(0, key.indexOf('/')))
    if (iface !== undefined && query(iface.index)?.ours === true) attach(iface.index, undefined)
  }

  list(): string[] {
    return this.#interfaces
      .all()
      .map(xdpPlace)
      .filter((place) => query(place.instance)?.ours === true)
      .map(({ key }) => key)
  }
}

/** Where they are wanted is known when the steps of policy have been taken: it is asked for in its turn. */
export class XdpAttachments extends Attachments<Place> {
  readonly writesWithPolicy: ReconcileStep

  /** `wanted`: undefined while nothing is loaded */
  constructor(of: { readonly hooks: Hooks<Place>; readonly log: Log; readonly wanted: () => readonly WantedProgram<Place>[] | undefined }) {
    super({ name: 'xdp', hooks: of.hooks, log: of.log })
    const pending = (): boolean => {
      const wanted = of.wanted()
      if (wanted !== undefined) this.setDesired(wanted)
      return this.writes.pending()
    }
    this.writesWithPolicy = { name: this.writes.name, pending, apply: () => this.writes.apply() }
  }
}

/** Drivers may refuse: a long MTU, too few queues. */
function attach(ifindex: number, program: BpfProgram | undefined): void {
  try {
    xdpAttach(ifindex, program)
  } catch {
    xdpAttach(ifindex, program, GENERIC)
  }
}

function query(ifindex: number): FoundProgram | undefined {
  return foundProgram(() => xdpQuery(ifindex), XDP_PROGRAM)
}
