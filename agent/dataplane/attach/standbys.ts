// SPDX-License-Identifier: Apache-2.0
/** Programs that wait behind ours at tcx hooks, and take over at once when another process detaches a link
 * (decisions/015). Their links end with the agent, without which nothing is repaired. Layer: agent/dataplane. */
import { BpfLink, tcxQuery } from '#native'
import { errorCode } from '#lib/base/errors.ts'
import type { WantedProgram } from './attachments.ts'
import type { InterfaceHook, LoadedProgram } from './hook.ts'

/** By these names their programs are recognised. */
export const STANDBY_PROGRAM = /^standby_/

type WantedStandby = WantedProgram<InterfaceHook>

export class Standbys implements Disposable {
  readonly #links = new Map<string, { readonly link: BpfLink; readonly program: number }>()
  #wanted: readonly WantedStandby[] = []
  /** programs that stand by, or did */
  readonly #attached = new Set<number>()

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

  /** Attaches one, in the order in which they are wanted, where ours is settled (`programAt`: its id): it waits for all
   * CPUs to notice, 5 to 20 ms. Not where another's program would stand between, for it may write over our word. False
   * when there was none. Throws the addon's errors; the place is left then until all are wanted anew. */
  attachNext(programAt: (place: InterfaceHook) => number | undefined): boolean {
    const next = this.#wanted.find((one) => programAt(one.place) !== undefined && !this.#isThere(one))
    if (next === undefined) return false
    const { place } = next
    this.#end(place.key)
    try {
      if (this.#isFollowed(place, programAt(place))) this.#leave(next)
      else this.#attach(next)
    } catch (thrown) {
      this.#leave(next)
      // its interface has gone, which a message on its way will say
      if (errorCode(thrown) !== 'ENODEV') throw thrown
    }
    return true
  }

  /** Gives the link at this hook away, with our program: it is where it has to be already. */
  take(place: InterfaceHook, program: LoadedProgram): BpfLink | undefined {
    const standby = this.#links.get(place.key)
    if (standby?.link.info().ifindex !== place.instance) return undefined
    standby.link.update(program.handle)
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

  #attach({ place, program }: WantedStandby): void {
    this.#links.set(place.key, { link: BpfLink.attachTcx(program.handle, place.instance, place.direction), program: program.id })
    this.#attached.add(program.id)
  }

  #leave(one: WantedStandby): void {
    this.#wanted = this.#wanted.filter((other) => other !== one)
  }

  /** Does another's program come behind ours? One that stood by may still be there. */
  #isFollowed({ instance, direction }: InterfaceHook, ours: number | undefined): boolean {
    const { programIds } = tcxQuery(instance, direction)
    return programIds.slice(programIds.findIndex((id) => id === ours) + 1).some((id) => !this.#attached.has(id))
  }

  /** Without waiting: the last reference is let go, and the kernel detaches the program a little later. */
  #end(key: string): void {
    this.#links.get(key)?.link.close()
    this.#links.delete(key)
  }
}
