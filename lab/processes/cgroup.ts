// SPDX-License-Identifier: Apache-2.0
/** The lab's part of the cgroup2 tree: every process of a lab is in it, so it is also the list of what may be
 * killed. Layer: lab. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'
import { UnsupportedError, errorCode } from '#lib/base/errors.ts'
import { killPid, startTime } from './process.ts'
import { waitFor } from '../wait.ts'

const ROOT = 'netplane-lab'

/** Directory of the lab's cgroup. Throws UnsupportedError when no cgroup2 is mounted. */
export function labCgroup(lab: string): string {
  const line = readFileSync('/proc/self/mounts', 'utf8')
    .split('\n')
    .map((text) => text.split(' '))
    .find((fields) => fields[2] === 'cgroup2')
  if (line?.[1] === undefined)
    throw new UnsupportedError('cgroup2', 'not mounted on this machine: mount -t cgroup2 none /sys/fs/cgroup/unified')
  return join(line[1], ROOT, lab)
}

export function makeCgroup(dir: string): void {
  mkdirSync(dir, { recursive: true })
}

/** Processes in it and below. */
export function pidsBelow(dir: string): number[] {
  return [dir, ...subdirectories(dir)].flatMap(pidsIn)
}

/** Processes in it alone, oldest first: the first is the one that was started, the others are its children. */
export function pidsIn(dir: string): number[] {
  const pids =
    readGone(() => readFileSync(join(dir, 'cgroup.procs'), 'utf8'))
      ?.split('\n')
      .map(Number)
      .filter((pid) => pid > 0) ?? []
  const started = new Map(pids.map((pid) => [pid, startTime(pid) ?? Number.POSITIVE_INFINITY]))
  return pids.sort((a, b) => (started.get(a) ?? 0) - (started.get(b) ?? 0) || a - b)
}

/** What was killed ends as soon as it has the processor: longer than that only what hangs takes. */
const ENDED_MS = 30_000

/** SIGKILL to everything in it and below until nothing is left. Returns what is still there after half a minute. */
export async function killCgroup(dir: string): Promise<number[]> {
  const empty = await waitFor(
    () => {
      const pids = pidsBelow(dir).filter((pid) => pid !== process.pid)
      for (const pid of pids) killPid(pid, 'SIGKILL')
      return pids.length === 0 ? true : undefined
    },
    { timeoutMs: ENDED_MS },
  )
  return empty === true ? [] : pidsBelow(dir)
}

/** Removes it, of whatever hierarchy, and everything below; false when a process is still in there after half a
 * minute. */
export async function removeCgroup(dir: string): Promise<boolean> {
  // an ended process leaves its cgroup a moment after it was waited for
  const gone = await waitFor(() => ([...subdirectories(dir).reverse(), dir].every(removeEmpty) ? true : undefined), { timeoutMs: ENDED_MS })
  return gone === true
}

/** All directories below, parents before children. */
function subdirectories(dir: string): string[] {
  const entries = readGone(() => readdirSync(dir, { withFileTypes: true })) ?? []
  return entries
    .filter((entry) => entry.isDirectory())
    .flatMap((entry) => [join(dir, entry.name), ...subdirectories(join(dir, entry.name))])
}

/** False when something is in it. */
export function removeEmpty(dir: string): boolean {
  if (!existsSync(dir)) return true
  try {
    rmdirSync(dir)
    return true
  } catch (thrown) {
    if (['EBUSY', 'ENOTEMPTY', 'ENOENT'].includes(errorCode(thrown) ?? '')) return false
    throw thrown
  }
}

/** A cgroup may go away while it is looked at. */
function readGone<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch (thrown) {
    if (errorCode(thrown) === 'ENOENT' || errorCode(thrown) === 'ENODEV') return undefined
    throw thrown
  }
}
