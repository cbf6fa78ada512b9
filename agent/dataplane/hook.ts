// SPDX-License-Identifier: Apache-2.0
/** A place of an interface where a program runs, and what puts programs there. Layer: agent/dataplane. */
import type { BpfProgram, Direction } from '#native'

export interface HookName {
  readonly iface: string
  readonly direction: Direction
}

export interface Hook extends HookName {
  readonly ifindex: number
}

export interface LoadedProgram {
  readonly id: number
  readonly handle: BpfProgram
}

/** How this kernel attaches: `TcxHooks`, `ClsactHooks`, a fake. Everything throws the addon's errors as they are. */
export interface Hooks {
  readonly kind: 'tcx' | 'clsact'
  /** id of our program that runs there; undefined when none of ours does, or only until the agent ends */
  read(hook: Hook): number | undefined
  /** Puts the program there, in place of ours without a gap. */
  write(hook: Hook, program: LoadedProgram): void
  /** Takes ours away; the interface may be gone. */
  clear(name: HookName): void
  /** Where something of ours is, interfaces that are gone included. */
  list(): HookName[]
}

export function hookKey(name: HookName): string {
  return `${name.iface}/${name.direction}`
}

/** File name of a hook's pin: bpffs refuses dots, which VLAN devices have in their names. */
export function hookPin(name: HookName): string {
  return `${name.iface.replaceAll('%', '%25').replaceAll('.', '%2e')}:${name.direction}`
}

/** The inverse of {@link hookPin}; undefined for other files. */
export function parseHookPin(file: string): HookName | undefined {
  const colon = file.lastIndexOf(':')
  const direction = file.slice(colon + 1)
  if (colon < 1 || (direction !== 'ingress' && direction !== 'egress')) return undefined
  return { iface: file.slice(0, colon).replaceAll('%2e', '.').replaceAll('%25', '%'), direction }
}
