// SPDX-License-Identifier: Apache-2.0
/** How a command gets into a place of the lab: first the cgroup, so that nothing of ours can ever run outside it,
 * then the namespaces. Layer: lab (pure). */

export interface Entry {
  /** cgroup directory, as the machine sees it */
  readonly cgroup: string
  readonly netns: string
  /** process whose mount, cgroup and UTS namespace to join; undefined: the machine's own */
  readonly holder: number | undefined
}

/** `dir` is kept where the place has it too. No step forks: the process that is started becomes the command. */
export function launchCommand(entry: Entry, dir: string, command: readonly string[]): string[] {
  const spaces = `/proc/${entry.holder}/ns`
  const joined = entry.holder === undefined ? [] : [`--mount=${spaces}/mnt`, `--cgroup=${spaces}/cgroup`, `--uts=${spaces}/uts`]
  const entered = [
    'nsenter',
    `--net=/run/netns/${entry.netns}`,
    ...joined,
    '--',
    'sh',
    '-c',
    'cd "$0" 2>/dev/null; exec "$@"',
    dir,
    ...command,
  ]
  return joinCgroup(entry.cgroup, entered)
}

/** The command line of `command` that first moves itself into the cgroup: it can never run outside. */
export function joinCgroup(cgroup: string, command: readonly string[]): string[] {
  return ['sh', '-c', 'echo $$ > "$0/cgroup.procs" && exec "$@"', cgroup, ...command]
}
