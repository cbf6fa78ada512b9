// SPDX-License-Identifier: Apache-2.0
/** Whether this process may do an agent's work at all. Layer: agent. */
import { readFileSync } from 'node:fs'

const CAP_NET_ADMIN = 12n
const CAP_NET_RAW = 13n
const CAP_SYS_ADMIN = 21n
const CAP_BPF = 39n
/** What the manifests ask for. */
const ASKED = [
  ['NET_ADMIN', CAP_NET_ADMIN],
  ['NET_RAW', CAP_NET_RAW],
  ['SYS_ADMIN', CAP_SYS_ADMIN],
] as const

/** The message for a process without the privileges of an agent; undefined: it has them. `status` is the text of
 * /proc/self/status. */
export function missingPrivileges(uid: number | undefined, status: string): string | undefined {
  const has = effectiveOf(status)
  // before Linux 5.8 there was no CAP_BPF, and CAP_SYS_ADMIN still stands for it
  if (uid === 0 || (has(CAP_NET_ADMIN) && (has(CAP_BPF) || has(CAP_SYS_ADMIN)))) return undefined
  return 'needs root (or CAP_BPF, CAP_NET_ADMIN)'
}

/** Of the capabilities that an agent's pod asks for those that it did not get: root without them is no root. */
export function missingCapabilities(status: string): readonly string[] {
  const has = effectiveOf(status)
  return ASKED.flatMap(([name, capability]) => (has(capability) ? [] : [name]))
}

function effectiveOf(status: string): (capability: bigint) => boolean {
  const effective = BigInt(`0x${/^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? '0'}`)
  return (capability) => ((effective >> capability) & 1n) === 1n
}

/** As {@link missingPrivileges}, of this process. */
export function ownMissingPrivileges(): string | undefined {
  return missingPrivileges(process.getuid?.(), readFileSync('/proc/self/status', 'utf8'))
}
