// SPDX-License-Identifier: Apache-2.0
/** What a reader of lists says of itself, as a line of JSON on its standard output. Layer: bench. */
import { readFileSync } from 'node:fs'

export interface OwnFacts {
  /** CPU time so far, in s; the process's start included */
  readonly cpu: number
  /** most resident memory so far, in MB (1e6) */
  readonly peak: number
}

export function ownFacts(): OwnFacts {
  const status = readFileSync('/proc/self/status', 'utf8')
  const peak = (Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) * 1024) / 1e6
  const { user, system } = process.cpuUsage()
  return { cpu: (user + system) / 1e6, peak }
}

export function say(what: object): void {
  process.stdout.write(`${JSON.stringify(what)}\n`)
}
