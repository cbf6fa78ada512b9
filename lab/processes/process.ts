// SPDX-License-Identifier: Apache-2.0
/** Processes of this machine, read from /proc. Layer: lab. */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { errorCode } from '#lib/base/errors.ts'

/** Ticks since boot at which it began: with the pid the identity of a process. undefined when there is none. */
export function startTime(pid: number): number | undefined {
  const stat = readProc(`${pid}/stat`)
  // the name in brackets may contain anything; field 22 counted from behind it
  const field = stat?.slice(stat.lastIndexOf(')') + 2).split(' ')[19]
  return field === undefined ? undefined : Number(field)
}

/** Its command line, or its name when it has none; undefined when there is no such process. */
export function commandLine(pid: number): string | undefined {
  const line = readProc(`${pid}/cmdline`)?.replaceAll('\0', ' ').trim()
  return line === '' ? readProc(`${pid}/comm`)?.trim() : line
}

/** False when it was gone already. */
export function killPid(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal)
  } catch (thrown) {
    if (errorCode(thrown) === 'ESRCH') return false
    throw thrown
  }
}

/** Whether all that it had open is closed. It no longer counts as a process of its cgroup a moment before. */
export function hasEnded(pid: number): boolean {
  const stat = readProc(`${pid}/stat`)
  if (stat === undefined) return true
  // of a zombie, which its parent has not waited for, the other threads must be gone as well
  return stat.slice(stat.lastIndexOf(')') + 2).startsWith('Z') && threadsOf(pid) <= 1
}

/** All processes whose network or mount namespace is one of these (inode numbers → names). */
export function processesIn(namespaces: ReadonlyMap<number, string>): { readonly pid: number; readonly namespace: string }[] {
  const pids = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
  return pids.flatMap((pid) => {
    const found = ['net', 'mnt'].map((kind) => namespaces.get(namespaceInode(pid, kind) ?? -1)).find((name) => name !== undefined)
    return found === undefined ? [] : [{ pid, namespace: found }]
  })
}

/** Inode of /proc/PID/ns/KIND; undefined when the process is gone. */
export function namespaceInode(pid: number, kind: string): number | undefined {
  try {
    return statSync(`/proc/${pid}/ns/${kind}`).ino
  } catch (thrown) {
    if (isGone(thrown)) return undefined
    throw thrown
  }
}

function threadsOf(pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/task`).length
  } catch (thrown) {
    if (isGone(thrown)) return 0
    throw thrown
  }
}

function readProc(path: string): string | undefined {
  try {
    return readFileSync(`/proc/${path}`, 'latin1')
  } catch (thrown) {
    if (isGone(thrown)) return undefined
    throw thrown
  }
}

/** A kernel thread's or another user's namespaces may be out of reach: neither is one of ours. */
function isGone(thrown: unknown): boolean {
  return ['ENOENT', 'ESRCH', 'EACCES', 'EPERM'].includes(errorCode(thrown) ?? '')
}
