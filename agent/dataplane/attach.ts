// SPDX-License-Identifier: Apache-2.0
/** Which program runs at which hook: wanted against actual. Layer: agent/dataplane. */
import type { Log } from '#lib/obs/log.ts'
import type { Device } from './devices.ts'
import { hookKey, type Hook, type HookName, type Hooks, type LoadedProgram } from './hook.ts'
import { failure, type Failure, type Outcome, type Part } from './part.ts'

/** The programs at the hooks of interfaces. */
export type HookProgram = 'from_workload' | 'to_workload' | 'from_host' | 'to_host'

export type HookPrograms = Readonly<Record<HookProgram, LoadedProgram>>

interface WantedHook extends Hook {
  readonly program: LoadedProgram
}

export interface AttachmentsOptions {
  readonly hooks: Hooks
  readonly log: Log
  /** something we had put there was gone or different */
  readonly repaired: (hook: HookName) => void
}

/** Adopts what is right already; looks at nothing twice unless {@link check} says so. */
export class Attachments {
  readonly #hooks: Hooks
  readonly #log: Log
  readonly #repaired: (hook: HookName) => void
  #wanted: ReadonlyMap<string, WantedHook> = new Map()
  /** id of the program seen or put there, with the interface it was on */
  readonly #settled = new Map<string, { readonly ifindex: number; readonly programId: number }>()
  readonly #unsettled = new Set<string>()
  /** hooks with something of ours, wanted or not; undefined until looked for */
  #present: Map<string, HookName> | undefined
  readonly writes: Part
  readonly removals: Part
  #adopted = 0

  constructor(options: AttachmentsOptions) {
    this.#hooks = options.hooks
    this.#log = options.log
    this.#repaired = options.repaired
    this.writes = { name: 'hooks', pending: () => this.#unsettled.size > 0, apply: () => this.#write() }
    this.removals = { name: 'hooks.remove', pending: () => this.#surplus().length > 0, apply: () => this.#remove() }
  }

  /** hooks that were right when first looked at */
  get adopted(): number {
    return this.#adopted
  }

  /** hooks that are as wanted */
  get settled(): number {
    return this.#wanted.size - this.#unsettled.size
  }

  setDesired(devices: readonly Device[], programs: HookPrograms): void {
    const wanted = devices.flatMap((device) => hooksOf(device, programs))
    this.#wanted = new Map(wanted.map((hook) => [hookKey(hook), hook]))
    for (const key of this.#settled.keys()) if (!this.#wanted.has(key)) this.#settled.delete(key)
    this.#unsettled.clear()
    for (const [key, hook] of this.#wanted) {
      const settled = this.#settled.get(key)
      if (settled?.ifindex !== hook.ifindex || settled.programId !== hook.program.id) this.#unsettled.add(key)
    }
  }

  /** Compares every hook with the kernel; what was removed or replaced behind our back becomes pending. */
  check(): void {
    for (const [key, hook] of this.#wanted) {
      if (this.#unsettled.has(key) || this.#actual(hook) === hook.program.id) continue
      this.#unsettled.add(key)
      this.#settled.delete(key)
      this.#repaired(hook)
    }
  }

  #write(): Outcome {
    const failures: Failure[] = []
    let done = 0
    for (const key of [...this.#unsettled]) {
      const hook = this.#wanted.get(key)
      if (hook === undefined) continue
      try {
        if (this.#settle(hook)) done++
      } catch (thrown) {
        failures.push(failure(key, thrown))
      }
    }
    return { done, failures }
  }

  /** True when something had to be changed. */
  #settle(hook: WantedHook): boolean {
    const key = hookKey(hook)
    const right = this.#hooks.read(hook) === hook.program.id
    if (right && !this.#settled.has(key)) this.#adopted++
    if (!right) this.#hooks.write(hook, hook.program)
    this.#present?.set(key, hook)
    this.#settled.set(key, { ifindex: hook.ifindex, programId: hook.program.id })
    this.#unsettled.delete(key)
    if (!right) this.#log.info({ iface: hook.iface, ifindex: hook.ifindex, direction: hook.direction, program: hook.program.id, by: this.#hooks.kind }, 'hook.attached')
    return !right
  }

  #remove(): Outcome {
    const failures: Failure[] = []
    let done = 0
    for (const [key, name] of this.#surplus()) {
      try {
        this.#hooks.clear(name)
        this.#present?.delete(key)
        done++
        this.#log.info({ iface: name.iface, direction: name.direction }, 'hook.detached')
      } catch (thrown) {
        failures.push(failure(key, thrown))
      }
    }
    return { done, failures }
  }

  #surplus(): [string, HookName][] {
    this.#present ??= new Map(this.#hooks.list().map((name) => [hookKey(name), name]))
    return [...this.#present].filter(([key]) => !this.#wanted.has(key))
  }

  /** A hook that cannot be read counts as wrong: writing it will say why. */
  #actual(hook: Hook): number | undefined {
    try {
      return this.#hooks.read(hook)
    } catch {
      return undefined
    }
  }
}

function hooksOf(device: Device, programs: HookPrograms): WantedHook[] {
  const { name: iface, index: ifindex } = device.iface
  const [ingress, egress] = device.kind === 'workload' ? [programs.from_workload, programs.to_workload] : [programs.from_host, programs.to_host]
  return [
    { iface, ifindex, direction: 'ingress', program: ingress },
    { iface, ifindex, direction: 'egress', program: egress },
  ]
}
