// SPDX-License-Identifier: Apache-2.0
/** What the agent finds out about its machine before it touches anything. Layer: agent. */
import { release } from 'node:os'
import { join } from 'node:path'
import { packageRoot } from '#lib/base/package.ts'

/** The oldest kernel line that Netplane is made for, as people write it. */
export const FLOOR = 'Linux 5.3, or 4.18.0-193 of Enterprise Linux 8'

/** True for kernels that are known to be too old. Whether a newer one will do is found by trying: vendors backport. */
export function isBelowFloor(kernel: string = release()): boolean {
  const version = versionOf(kernel)
  if (version === undefined) return false
  const [, build = 0] = /^[\d.]+-(\d+)/.exec(kernel) ?? []
  const enterprise = version === 4018 && kernel.includes('.el8') && Number(build) >= 193
  return version < 5003 && !enterprise
}

/** Whether programs and maps count as locked memory. */
export function countsMemlock(kernel: string = release()): boolean {
  const version = versionOf(kernel)
  return version !== undefined && version < 5011
}

/** Where the build puts the BPF objects. */
export function packageObjects(): string {
  return join(packageRoot(), 'bpf')
}

/** 5.10 as 5010; undefined: nobody can tell */
function versionOf(kernel: string): number | undefined {
  const [, major, minor] = /^(\d+)\.(\d+)\.\d+/.exec(kernel) ?? []
  return major === undefined || minor === undefined ? undefined : Number(major) * 1000 + Number(minor)
}
