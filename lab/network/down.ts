// SPDX-License-Identifier: Apache-2.0
/** Takes a lab away: its processes, namespaces, cgroups, files, and nothing else. Layer: lab. */
import { existsSync, readdirSync, statSync } from 'node:fs'
import { killCgroup, labCgroup, removeCgroup, removeEmpty } from '../processes/cgroup.ts'
import { mustRun } from '../processes/command.ts'
import { netnsInode, removeNetns } from './netns.ts'
import { labPaths } from '../paths.ts'
import { holderOf } from '../processes/place-holders.ts'
import { commandLine, namespaceInode, processesIn } from '../processes/process.ts'
import { readState, removeState, type LabState } from '../state.ts'

/** Something of the lab that could not be taken away, or keeps part of it alive. */
export interface Leftover {
  readonly kind: 'process' | 'netns' | 'cgroup'
  /** "pid 123 (sleep 100)", or a name */
  readonly what: string
  readonly why: string
}

/** Safe at any time and after any crash. What is named in the answer was left alone. */
export async function takeDown(lab: string): Promise<Leftover[]> {
  const state = readState(lab)
  const cgroup = labCgroup(lab)
  const namespaces = namespacesNow(lab, state)
  const before = new Set(processesIn(namespaces).map(({ pid }) => pid))
  const stuck = existsSync(cgroup) ? await killCgroup(cgroup) : []
  // a namespace that has ended leaves its inode to another one, whose processes were not there before
  const strangers = processesIn(namespaces).filter(({ pid }) => before.has(pid) && pid !== process.pid && !stuck.includes(pid))
  await removeNetns(mustRun, state?.netns ?? [])
  const emptied = stuck.length === 0 && (await removeCgroup(cgroup))
  // with a process still in the way the state stays, so that a later `down` knows what was left
  if (emptied) removeState(lab)
  // of all labs: it goes with the last
  if (emptied) removeEmpty(labCgroup(''))
  return [
    ...stuck.map((pid): Leftover => ({ kind: 'process', what: processText(pid), why: 'does not end when killed' })),
    ...strangers.map(({ pid, namespace }): Leftover => ({
      kind: 'process',
      what: processText(pid),
      why: `not started by the lab; keeps ${namespace} alive until it ends`,
    })),
    ...(emptied ? [] : [{ kind: 'cgroup' as const, what: cgroup, why: 'still in use' }]),
    ...foreignNetns(lab).map((name): Leftover => ({ kind: 'netns', what: name, why: 'named like one of the lab, but not made by it' })),
  ]
}

/** Names of all labs of this machine that have a state file or a cgroup. */
export function knownLabs(): string[] {
  const dirs = [labPaths('').dir, labCgroup('')].filter((dir) => existsSync(dir))
  const names = dirs.flatMap((dir) => readdirSync(dir).filter((name) => statSync(`${dir}/${name}`).isDirectory()))
  return [...new Set(names)].sort()
}

/** Network namespaces of the lab and mount namespaces of its nodes, by inode. */
function namespacesNow(lab: string, state: LabState | undefined): Map<number, string> {
  const found = new Map<number, string>()
  for (const name of state?.netns ?? []) {
    const inode = netnsInode(name)
    if (inode !== undefined) found.set(inode, name)
  }
  for (const node of state?.topology.nodes ?? []) {
    const holder = holderOf(lab, node.name)
    const inode = holder === undefined ? undefined : namespaceInode(holder, 'mnt')
    if (inode !== undefined) found.set(inode, `the mounts of node ${node.name}`)
  }
  return found
}

function foreignNetns(lab: string): string[] {
  if (!existsSync('/run/netns')) return []
  return readdirSync('/run/netns').filter((name) => name.startsWith(`nplab-${lab}-`))
}

function processText(pid: number): string {
  return `pid ${pid} (${commandLine(pid) ?? 'ended meanwhile'})`
}
