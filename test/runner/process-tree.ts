// SPDX-License-Identifier: Apache-2.0
/** A process with all that it has begun. Layer: test. */
import { readdirSync, readFileSync } from 'node:fs'
import { killPid } from '../../lab/processes/process.ts'

/** Ends it, and whatever has it as a parent, however far down. */
export function endTree(pid: number): void {
  for (const one of [pid, ...below(pid, childrenByParent())]) killPid(one, 'SIGKILL')
}

function below(pid: number, children: ReadonlyMap<number, readonly number[]>): readonly number[] {
  return (children.get(pid) ?? []).flatMap((child) => [child, ...below(child, children)])
}

function childrenByParent(): ReadonlyMap<number, readonly number[]> {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  const found = new Map<number, number[]>()
  for (const pid of pids) {
    const parent = parentOf(pid)
    if (parent !== undefined) found.set(parent, [...(found.get(parent) ?? []), Number(pid)])
  }
  return found
}

/** undefined: it has just ended */
function parentOf(pid: string): number | undefined {
  try {
    return Number(/^PPid:\s*(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
  } catch {
    return undefined
  }
}
