// SPDX-License-Identifier: Apache-2.0
/** Processes that outlive the command that started them, each alone in a cgroup of its own. Layer: lab. */
import { spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync, rmSync } from 'node:fs'
import { LabError } from '../errors.ts'
import { killCgroup, makeCgroup, pidsIn } from './cgroup.ts'
import { launchCommand, type Entry } from './launch.ts'
import { hasEnded, killPid, namespaceInode } from './process.ts'
import { netnsInode } from '../network/netns.ts'
import { waitFor } from '../wait.ts'

export interface Daemon {
  /** for messages: "agent of node a" */
  readonly subject: string
  readonly entry: Entry
  readonly command: readonly string[]
  /** standard output and error are appended */
  readonly log: string
  /** its log is empty when it starts: what the log says is then true of the one that runs */
  readonly ownLog?: boolean
  readonly env?: Readonly<Record<string, string | undefined>>
}

/** Its process id; undefined when it does not run. */
export function daemonPid(cgroup: string): number | undefined {
  return pidsIn(cgroup)[0]
}

/** As {@link daemonPid}, but one in a network namespace that has since been replaced does not count. */
export function daemonPidIn(entry: Pick<Entry, 'cgroup' | 'netns'>): number | undefined {
  const pid = daemonPid(entry.cgroup)
  return pid !== undefined && namespaceInode(pid, 'net') === netnsInode(entry.netns) ? pid : undefined
}

/** Starts it unless it runs; one that runs in a network namespace that has since been replaced is replaced too. */
export async function ensureDaemon(daemon: Daemon): Promise<number> {
  const running = daemonPidIn(daemon.entry)
  if (running !== undefined) return running
  await killCgroup(daemon.entry.cgroup)
  return await startDaemon(daemon)
}

/** Resolves once it is in its cgroup. Throws LabError when it ended before. */
export async function startDaemon(daemon: Daemon): Promise<number> {
  makeCgroup(daemon.entry.cgroup)
  return await spawnDetached(daemon, launchCommand(daemon.entry, '/', daemon.command), () => daemonPid(daemon.entry.cgroup))
}

/** Runs `command` detached, its output appended to the log, until `isUp` says so. */
export async function spawnDetached<T>(
  daemon: Pick<Daemon, 'subject' | 'log' | 'ownLog' | 'env'>,
  command: readonly string[],
  isUp: () => T | undefined,
): Promise<T> {
  const [program = '', ...args] = command
  if (daemon.ownLog === true) rmSync(daemon.log, { force: true })
  const log = openSync(daemon.log, 'a')
  try {
    const child = spawn(program, args, { detached: true, stdio: ['ignore', log, log], cwd: '/', env: daemon.env ?? process.env })
    child.on('error', () => undefined)
    const up = await waitFor(() => (child.exitCode === null && child.signalCode === null ? isUp() : 'ended'), {
      timeoutMs: 10_000,
      everyMs: 5,
    })
    child.unref()
    if (up === undefined || up === 'ended') throw new LabError(daemon.subject, `did not start: ${logTail(daemon.log, 5)}`)
    return up
  } finally {
    closeSync(log)
  }
}

/** Signals the process and waits for its end: by then its sockets are closed. What is left of its cgroup after
 * `timeoutMs` is killed. False when nothing ran. */
export async function stopDaemon(cgroup: string, signal: NodeJS.Signals, timeoutMs: number): Promise<boolean> {
  const pids = pidsIn(cgroup)
  const [pid] = pids
  if (pid === undefined) return false
  killPid(pid, signal)
  await waitFor(() => (pidsIn(cgroup).length === 0 && pids.every(hasEnded) ? true : undefined), { timeoutMs })
  await killCgroup(cgroup)
  return true
}

/** More of one line says nothing to people: a verifier's log alone has thousands. */
const LONGEST_LINE = 400

/** The last lines of a log, long ones cut; "(nothing in its log)" when there are none. */
export function logTail(path: string, lines: number): string {
  const text = readFileSync(path, 'utf8').trimEnd()
  return text === '' ? '(nothing in its log)' : text.split('\n').slice(-lines).map(shorten).join('\n')
}

export function shorten(line: string): string {
  return line.length <= LONGEST_LINE ? line : `${line.slice(0, LONGEST_LINE)} …`
}
