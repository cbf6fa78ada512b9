// SPDX-License-Identifier: Apache-2.0
/** How fast this machine is: it did the same as the machine of the goals, in the same run as what is judged by them.
 * Layer: bench (pure). */
import type { Results } from './results.ts'
import { median } from './statistics.ts'

/** ns of an empty program on the machine that the goals are from. */
const EMPTY_NS = 31
/** CPU of client-node's informers there, in s: the middle of 2.1 and 3.0, so a fifth more or less. */
const INFORMERS_S = 2.55
/** Size of cluster of that. */
const INFORMERS = 'client_node_list_cpu_s.10k'

/** How many times as long as there everything takes, roughly: programs as an empty one, the control plane, kernel's
 * part and all, as JavaScript that reads JSON. Undefined where that was not measured. */
export interface MachineSpeed {
  readonly packet: number | undefined
  readonly control: number | undefined
}

export function machineSpeedOf({ packet, control }: Pick<Results, 'packet' | 'control'>): MachineSpeed {
  const empty = Object.values(packet).map(({ baseline_ns }) => baseline_ns)
  const informers = control[INFORMERS]
  return {
    packet: empty.length === 0 ? undefined : median(empty) / EMPTY_NS,
    control: informers === undefined ? undefined : informers / INFORMERS_S,
  }
}

/** Whether a figure of the control plane is a time: those grow with the pace, bytes and counts do not. */
export function isTime(id: string): boolean {
  return /_(s|ms|ms_p50|ms_p99)\./.test(id)
}

/** A sentence with a space before it, or nothing. */
export function machineSpeedText({ packet, control }: MachineSpeed): string {
  const what = [
    ...(packet === undefined ? [] : [`an empty program × ${packet.toFixed(1)}`]),
    ...(control === undefined
      ? []
      : [`client-node's informers × ${control.toFixed(2)} (the control plane's times divided by that would be its)`]),
  ]
  return what.length === 0 ? '' : ` Times as on the machine of the goals: ${what.join(', ')}.`
}
