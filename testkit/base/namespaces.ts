// SPDX-License-Identifier: Apache-2.0
/** Commands that run apart from the machine. Layer: testkit. */

/** In front of a command: an own network and mount view with an own bpffs and own names of namespaces, so that nothing
 * touches the machine or another such command. Needs root. */
export const inOwnNamespaces: readonly string[] = [
  'unshare',
  '--net',
  '--mount',
  '--',
  'sh',
  '-c',
  'ip link set lo up && mount -t bpf bpf /sys/fs/bpf && mkdir -p /run/netns && mount -t tmpfs tmpfs /run/netns && exec "$@"',
  'sh',
]
