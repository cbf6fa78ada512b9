// SPDX-License-Identifier: Apache-2.0
/** Places where a program runs, and what puts programs there. Layer: agent/dataplane. */
import type { BpfProgram, Direction } from '#native'

export interface Place {
  /** names it for people, and across restarts: "eth0/ingress", "cgroup/connect4" */
  readonly key: string
  /** tells one that went from one that came after it under the same key: the interface's index; 0 where there is
   * none */
  readonly instance: number
}

export interface LoadedProgram {
  readonly id: number
  readonly handle: BpfProgram
}

/** How programs get to places of one sort. Everything throws the addon's errors as they are. */
export interface Hooks<P extends Place> {
  /** "tcx", "clsact" */
  readonly kind: string
  /** id of our program that runs there; undefined when none of ours does, or only until the agent ends */
  read(place: P): number | undefined
  /** Puts the program there, in place of ours without a gap. Throws with the code ENODEV when the interface has
   * gone. */
  write(place: P, program: LoadedProgram): void
  /** Takes ours away; the interface may be gone. */
  clear(key: string): void
  /** Keys of places where something of ours is, those of interfaces that are gone included. */
  list(): string[]
}

export const DIRECTIONS = ['ingress', 'egress'] as const satisfies readonly Direction[]

/** One direction of an interface; `instance` is its index. */
export interface InterfaceHook extends Place {
  readonly direction: Direction
}

export function interfaceHook(iface: { readonly name: string; readonly index: number }, direction: Direction): InterfaceHook {
  return { key: `${iface.name}/${direction}`, instance: iface.index, direction }
}

/** The inverse of the key; undefined for keys of other places. Names of interfaces have no slash. */
export function parseHookKey(key: string): { readonly iface: string; readonly direction: Direction } | undefined {
  const [iface, end] = key.split('/')
  const direction = DIRECTIONS.find((one) => one === end)
  return iface === undefined || direction === undefined ? undefined : { iface, direction }
}

/** File name of a place's pin: bpffs refuses dots, which VLAN devices have in their names. */
export function pinName(key: string): string {
  return key.replaceAll('%', '%25').replaceAll('.', '%2e').replaceAll('/', ':')
}

/** The inverse of {@link pinName}. */
export function pinKey(file: string): string {
  const colon = file.lastIndexOf(':')
  return `${file.slice(0, colon)}/${file.slice(colon + 1)}`.replaceAll('%2e', '.').replaceAll('%25', '%')
}
