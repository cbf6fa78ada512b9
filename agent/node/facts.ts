// SPDX-License-Identifier: Apache-2.0
/** What the agent finds out about its machine before it touches anything. Layer: agent. */
import { release } from 'node:os'
import { join } from 'node:path'
import { packageRoot } from '#lib/base/package.ts'

/** The oldest kernel line that Netplane is made for, as people write it. */
export const FLOOR = 'Linux 5.3, or 4.18.0-193 of Enterprise Linux 8'

/** True for kernels that are known to be too old. Whether a newer one will do is found by trying: vendors backport. */
export function isBelowFloor(kernel: string = release()): boolean {
  const [, major, minor, build] = /^(\d+)\.(\d+)\.\d+(?:-(\d+))?/.exec(kernel) ?? []
  if (major === undefined || minor === undefined) return false
  const version = Number(major) * 1000 + Number(minor)
  const enterprise = version === 4018 && kernel.includes('.el8') && Number(build ?? 0) >= 193
  return version < 5003 && !enterprise
}

/** Where the build puts the BPF objects. */
export function packageObjects(): string {
  return join(packageRoot(), 'bpf')
}
