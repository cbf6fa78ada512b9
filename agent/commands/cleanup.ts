// SPDX-License-Identifier: Apache-2.0
/** netplane-agent --cleanup. Layer: agent. */
import { rmSync } from 'node:fs'
import { errorText } from '#lib/base/errors.ts'
import { removeInstalled } from '../cni/install/record.ts'
import { cleanup, type CleanupReport } from '../dataplane/cleanup.ts'
import { endTakeover } from '../dataplane/kube-proxy/cleanup.ts'
import { endKeptFlows } from '../dataplane/kube-proxy/kept-flows.ts'
import { endPortRedirects } from '../dataplane/kube-proxy/port-redirects.ts'
import { Pins } from '../dataplane/pins.ts'
import { takeLock } from '../run/lock.ts'
import { cniFoldersFile, dropLastGood, leftFiles, lockPath, sysctlFile } from '../run/state-files.ts'

export interface CleanupCommand {
  readonly pinDir: string
  readonly stateDir: string
  readonly keepDir: string
  readonly cgroup: string | undefined
}

/** Prints what was removed; returns the exit code. */
export async function cleanupCommand(command: CleanupCommand): Promise<number> {
  const taken = await takeLock({ path: lockPath(command.stateDir), line: `netplane-agent --cleanup, pid ${process.pid}` })
  if (taken.kind === 'taken') {
    process.stderr.write(`netplane-agent: an agent is running and would put everything back: ${taken.by}. Stop it first.\n`)
    return 1
  }
  using lock = taken.lock
  const first = await cleanUp(command)
  const found = first.failed.length === 0 ? verified(first, await cleanUp(command)) : first
  const report = lock.remove() ? { ...found, removed: [...found.removed, `folder ${command.stateDir}`] } : found
  for (const line of report.removed) process.stdout.write(`removed ${line}\n`)
  for (const line of report.restored) process.stdout.write(`restored ${line}\n`)
  for (const line of report.failed) process.stderr.write(`failed ${line}\n`)
  if (report.removed.length + report.restored.length + report.failed.length === 0) process.stdout.write('there was nothing to remove\n')
  return report.failed.length === 0 ? 0 : 1
}

/** What a second look finds is there again, or has never gone. */
export function verified(first: CleanupReport, second: CleanupReport): CleanupReport {
  const again = [...second.removed, ...second.restored].map((line) => `${line}: there again after it was removed`)
  return { ...first, failed: [...first.failed, ...again, ...second.failed] }
}

async function cleanUp(command: CleanupCommand): Promise<CleanupReport> {
  dropLastGood(command.keepDir)
  const cni = withoutCni(command)
  const foreign: string[] = []
  const pins = new Pins(command.pinDir, ({ path, uid }) => foreign.push(`${path} of user ${uid}`))
  const own = cleanup({ pins, sysctlState: sysctlFile(command.stateDir), cgroup: command.cgroup })
  return await withTables({ ...own, removed: [...cni.removed, ...foreign, ...own.removed], failed: [...cni.failed, ...own.failed] })
}

/** Removes what runtimes find us by. Pods' veths and their attachment files stay: runtimes take them away. */
function withoutCni({ stateDir, keepDir }: CleanupCommand): Pick<CleanupReport, 'removed' | 'failed'> {
  try {
    const removed = removeInstalled(cniFoldersFile(keepDir))
    for (const path of leftFiles(stateDir)) rmSync(path, { force: true })
    return { removed: removed.map((path) => `file ${path}`), failed: [] }
  } catch (thrown) {
    return { removed: [], failed: [`cni: ${errorText(thrown)}`] }
  }
}

/** Tables of ours beside kube-proxy's: they keep up connections of it and flows of programs, and redirect ports. */
async function withTables(report: CleanupReport): Promise<CleanupReport> {
  const { removed, failed } = { removed: [...report.removed], failed: [...report.failed] }
  const tables = { 'netplane-takeover': () => endTakeover(), 'netplane-ports': endPortRedirects, 'netplane-flows': () => endKeptFlows() }
  for (const [table, end] of Object.entries(tables)) {
    try {
      if (await end()) removed.push(`nftables ${table}`)
    } catch (thrown) {
      failed.push(`nftables: ${errorText(thrown)}`)
    }
  }
  return { ...report, removed, failed }
}
