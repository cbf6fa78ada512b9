// SPDX-License-Identifier: Apache-2.0
/** What a process has used, as the kernel has counted it. Layer: bench. */
import { readFileSync } from 'node:fs'

export interface Memory {
  /** resident, MB (1e6): now, and the most there was */
  readonly now: number
  readonly peak: number
}

/** Of a tick, which every Linux of today gives as a hundredth of a second. */
const TICK_MS = 10

export function memoryOf(pid: number): Memory {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const field = (name: string): number => (Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? 0) * 1024) / 1e6
  return { now: field('VmRSS'), peak: field('VmHWM') }
}

/** CPU time in ms, with that of the children it has waited for: to 10 ms. */
export function cpuOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  // the name, in parentheses, may hold anything
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks) * TICK_MS, 0)
}
