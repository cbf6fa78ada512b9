// SPDX-License-Identifier: Apache-2.0
/** Programs that wait behind ours at tcx hooks, and take over at once when another process detaches a link
 * (decisions/015). Their links end with the agent, without which nothing is repaired. Layer: agent/dataplane. */
import { BpfLink } from '#native'
import { errorCode } from '#lib/base/errors.ts'
import type { WantedProgram } from './attachments.ts'
import type { InterfaceHook } from './hook.ts'

type WantedStandby = WantedProgram<InterfaceHook>

export class Standbys implements Disposable {
  readonly #links = new Map<string, { readonly link: BpfLink; readonly program: number }>()
  #wanted: readonly WantedStandby[] = []

  /** What is not wanted any more ends; of other programs come new ones, in their turn. */
  setDesired(wanted: readonly WantedStandby[]): void {
    this.#wanted = wanted
    const right = new Set(wanted.filter((one) => this.#isThere(one)).map(({ place }) => place.key))
    for (const key of this.#links.keys()) if (!right.has(key)) this.#end(key)
  }

  /** False when some are to be attached. */
  get complete(): boolean {
    return this.#wanted.every((one) => this.#isThere(one))
  }

  /** Attaches one, in the order in which they are wanted, where ours `isSettled`: it waits for all CPUs to notice, 5 to
   * 20 ms. False when there was none. Throws the addon's errors; the place is left then until all are wanted anew. */
  attachNext(isSettled: (place: InterfaceHook) => boolean): boolean {
    const next = this.#wanted.find((one) => isSettled(one.place) && !this.#isThere(one))
    if (next === undefined) return false
    const { place, program } = next
    this.#end(place.key)
    try {
      this.#links.set(place.key, { link: BpfLink.attachTcx(program.handle, place.instance, place.direction), program: program.id })
    } catch (thrown) {
      this.#wanted = this.#wanted.filter((one) => one !== next)
      // its interface has gone, which a message on its way will say
      if (errorCode(thrown) !== 'ENODEV') throw thrown
    }
    return true
  }

  /** Gives the link at this hook away, to be ours: it is where it has to be already. */
  take(place: InterfaceHook): BpfLink | undefined {
    const standby = this.#links.get(place.key)
    if (standby?.link.info().ifindex !== place.instance) return undefined
    this.#links.delete(place.key)
    return standby.link
  }

  [Symbol.dispose](): void {
    for (const key of this.#links.keys()) this.#end(key)
  }

  #isThere({ place, program }: WantedStandby): boolean {
    const standby = this.#links.get(place.key)
    return standby?.program === program.id && standby.link.info().ifindex === place.instance
  }

  /** Without waiting: the last reference is let go, and the kernel detaches the program a little later. */
  #end(key: string): void {
    this.#links.get(key)?.link.close()
    this.#links.delete(key)
  }
}
