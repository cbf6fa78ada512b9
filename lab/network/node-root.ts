// SPDX-License-Identifier: Apache-2.0
/** The script that turns a process into the root of a lab node: its own mounts, cgroup root and host name.
 * Layer: lab (pure). */

export interface NodeRoot {
  readonly node: string
  /** an empty place for the new /run while it is built */
  readonly stage: string
  /** directories below /run that must stay visible inside */
  readonly keep: readonly string[]
}

/** For `sh -euc`, inside fresh mount, cgroup, UTS and the node's network namespace, its process alone in the node's
 * cgroup. Joining the cgroup "holder" is its last step: a process in there is a complete node. */
export function nodeRootScript(root: NodeRoot): string {
  const stage = quote(root.stage)
  return [
    // -n: there is no /run/mount/utab to keep in our private /run
    `mkdir -p ${stage}`,
    `mount -n -t tmpfs -o mode=755 tmpfs ${stage}`,
    `mkdir -p ${stage}/netplane ${stage}/lock`,
    ...root.keep.map((dir) => `mkdir -p ${stage}${quote(belowRun(dir))}; mount -n --bind ${quote(dir)} ${stage}${quote(belowRun(dir))}`),
    // the copies of ip-netns' mounts would keep namespaces alive that are long deleted
    'umount -n -R -l /run/netns 2>/dev/null || true',
    `mount -n --move ${stage} /run`,
    // a new sysfs shows this network namespace; the machine's bpffs and cgroups go out of sight with the old one
    'umount -n -R -l /sys',
    // wherever else they are mounted: the agent takes the first cgroup2 that it finds. A space is \040, whose 0 is no
    // digit of %b's \0nnn.
    String.raw`for dir in $(sed -n 's/^[^ ]* \([^ ]*\) \(cgroup2\|bpf\) .*/\1/p' /proc/self/mounts | sed 's/\\/\\0/g'); do umount -n -l "$(printf %b "$dir")"; done`,
    'mount -n -t sysfs sysfs /sys',
    'mount -n -t cgroup2 cgroup2 /sys/fs/cgroup',
    'mount -n -t bpf bpf /sys/fs/bpf',
    `printf %s ${quote(root.node)} > /proc/sys/kernel/hostname || true`,
    // settings of the whole machine are out of reach, those of this network namespace are not
    'mount -n --bind /proc/sys /proc/sys',
    'mount -n -o remount,ro,bind /proc/sys',
    'mount -n --bind /proc/sys/net /proc/sys/net',
    'mount -n -o remount,rw,bind /proc/sys/net',
    'mkdir -p /sys/fs/cgroup/holder',
    'echo $$ > /sys/fs/cgroup/holder/cgroup.procs',
    'exec sleep infinity',
  ].join('\n')
}

/** One shell word. */
export function quote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`
}

function belowRun(dir: string): string {
  return dir.replace(/^\/(var\/)?run(?=\/)/, '')
}
