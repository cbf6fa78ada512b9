// SPDX-License-Identifier: Apache-2.0
/** Which program runs at which place: wanted against actual. Layer: agent/dataplane. */
import { errorCode } from '#lib/base/errors.ts'
import type { Log } from '#lib/obs/log.ts'
import { interfaceHook, type Hooks, type InterfaceHook, type LoadedProgram, type Place } from './hook.ts'
import type { Device } from '../host/devices.ts'
import { failure, type Failure, type Outcome, type ReconcileStep } from '../reconcile/step.ts'

export interface WantedProgram<P extends Place> {
  readonly place: P
  readonly program: LoadedProgram
}

export interface AttachmentsOptions<P extends Place> {
  /** of the two parts: "hooks", and with ".remove" the removals */
  readonly name: string
  readonly hooks: Hooks<P>
  readonly log: Log
}

/** Attaching waits for all CPUs to notice, 10 to 20 ms each time; in between others get their turn. */
const WRITES_A_PASS = 4

/** Adopts what is right already; looks at nothing twice unless {@link check} says so. */
export class Attachments<P extends Place> {
  readonly writes: ReconcileStep
  readonly removals: ReconcileStep
  readonly #hooks: Hooks<P>
  readonly #log: Log
  #wanted: ReadonlyMap<string, WantedProgram<P>> = new Map()
  /** what was seen or put there */
  readonly #settled = new Map<string, { readonly instance: number; readonly program: number }>()
  readonly #unsettled = new Set<string>()
  /** where something of ours is, wanted or not; undefined until looked for */
  #present: Set<string> | undefined
  #adopted = 0

  constructor(options: AttachmentsOptions<P>) {
    this.#hooks = options.hooks
    this.#log = options.log
    this.writes = { name: options.name, pending: () => this.#unsettled.size > 0, apply: () => this.#write() }
    this.removals = { name: `${options.name}.remove`, pending: () => this.#surplus().length > 0, apply: () => this.#remove() }
  }

  /** places that were right when first looked at */
  get adopted(): number {
    return this.#adopted
  }

  /** places that are as wanted */
  get settled(): number {
    return this.#settled.size
  }

  /** true when every place runs the program that is wanted there */
  get complete(): boolean {
    return this.#unsettled.size === 0
  }

  /** It runs there, as far as we have looked. */
  isSettled(place: Place): boolean {
    return this.programAt(place) !== undefined
  }

  /** The id of the wanted program, where it runs as far as we have looked; undefined: it does not. */
  programAt({ key, instance }: Place): number | undefined {
    const settled = this.#unsettled.has(key) ? undefined : this.#settled.get(key)
    return settled?.instance === instance ? settled.program : undefined
  }

  /** There still, and not by now at another interface under that name. */
  wants({ key, instance }: Place): boolean {
    return this.#wanted.get(key)?.place.instance === instance
  }

  setDesired(wanted: readonly WantedProgram<P>[]): void {
    this.#wanted = new Map(wanted.map((one) => [one.place.key, one]))
    this.#unsettled.clear()
    for (const key of this.#settled.keys()) if (!this.#wanted.has(key)) this.#settled.delete(key)
    for (const [key, { place, program }] of this.#wanted) {
      const settled = this.#settled.get(key)
      if (settled?.instance !== place.instance || settled.program !== program.id) this.#unsettled.add(key)
    }
  }

  /** Compares every place with the kernel. What was removed or replaced behind our back becomes pending; returns
   * where. */
  check(): P[] {
    const wrong: P[] = []
    for (const [key, { place, program }] of this.#wanted) {
      if (this.#unsettled.has(key) || this.#actual(place) === program.id) continue
      this.#unsettled.add(key)
      this.#settled.delete(key)
      wrong.push(place)
    }
    return wrong
  }

  #write(): Outcome {
    const failures: Failure[] = []
    let done = 0
    for (const key of [...this.#unsettled]) {
      if (done >= WRITES_A_PASS) break
      const wanted = this.#wanted.get(key)
      if (wanted === undefined) continue
      try {
        if (this.#settle(wanted)) done++
      } catch (thrown) {
        // its interface has gone, which a message on its way will say
        if (errorCode(thrown) === 'ENODEV') this.#unsettled.delete(key)
        else failures.push(failure(key, thrown))
      }
    }
    return { done, failures }
  }

  /** True when something had to be changed. */
  #settle({ place, program }: WantedProgram<P>): boolean {
    const right = this.#hooks.read(place) === program.id
    if (right && !this.#settled.has(place.key)) this.#adopted++
    if (!right) {
      this.#hooks.write(place, program)
      this.#log.info({ hook: place.key, program: program.id, by: this.#hooks.kind }, 'hook.attached')
    }
    this.#present?.add(place.key)
    this.#settled.set(place.key, { instance: place.instance, program: program.id })
    this.#unsettled.delete(place.key)
    return !right
  }

  #remove(): Outcome {
    const failures: Failure[] = []
    let done = 0
    for (const key of this.#surplus()) {
      try {
        this.#hooks.clear(key)
        this.#present?.delete(key)
        done++
        this.#log.info({ hook: key }, 'hook.detached')
      } catch (thrown) {
        failures.push(failure(key, thrown))
      }
    }
    return { done, failures }
  }

  #surplus(): string[] {
    this.#present ??= new Set(this.#hooks.list())
    return [...this.#present].filter((key) => !this.#wanted.has(key))
  }

  /** A place that cannot be read counts as wrong: writing it will say why. */
  #actual(place: P): number | undefined {
    try {
      return this.#hooks.read(place)
    } catch {
      return undefined
    }
  }
}

/** The programs at the hooks of interfaces. */
export type HookPrograms = Readonly<Record<'from_workload' | 'to_workload' | 'from_host' | 'to_host', LoadedProgram>>

/** Packets that enter the node by a device are its ingress: those a pod sends, and those the network brings. */
export function interfacePrograms(devices: readonly Device[], programs: HookPrograms): WantedProgram<InterfaceHook>[] {
  return devices.flatMap(({ kind, iface }) => {
    const [ingress, egress] = kind === 'workload' ? [programs.from_workload, programs.to_workload] : [programs.from_host, programs.to_host]
    return [
      { place: interfaceHook(iface, 'ingress'), program: ingress },
      { place: interfaceHook(iface, 'egress'), program: egress },
    ]
  })
}
