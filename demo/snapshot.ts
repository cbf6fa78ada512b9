// SPDX-License-Identifier: Apache-2.0
/** Everything of a node that an agent may touch, as text that can be compared. Layer: demo. */
import type { Lab } from '../lab/lab.ts'

/** Counters and timers are left out: they are no one's doing. */
const SCRIPT = [
  'ip -o link show | sed "s/ qlen [0-9]*//"',
  'ip -o addr show | sed "s/ [a-z]*_lft [a-z0-9]*//g"',
  'ip -4 rule show; ip -6 rule show; ip -4 route show table all; ip -6 route show table all',
  // beside devices there may be a file there, of the bonding driver
  'for device in $(cd /sys/class/net && ls -d */); do device=${device%/}; tc qdisc show dev $device; tc filter show dev $device ingress; tc filter show dev $device egress; done',
  'for folder in /sys/fs/bpf /run/netplane; do [ ! -d $folder ] || find $folder -mindepth 1; done',
  'for name in $(find /proc/sys/net/ipv4/conf /proc/sys/net/ipv6/conf -name "*forwarding" -o -name rp_filter -o -name accept_local); do echo $name $(cat $name); done',
  'echo ip_forward $(cat /proc/sys/net/ipv4/ip_forward)',
].join('\n')

export async function snapshot(lab: Lab, node: string): Promise<string> {
  return await lab.mustRun({ kind: 'node', node }, ['sh', '-euc', SCRIPT])
}
