// SPDX-License-Identifier: Apache-2.0
/** The oldest kernel that takes our programs, by its name. Layer: lib/base (pure). */

/** As people write it. */
export const OLDEST_KERNEL = 'Linux 5.3, or 4.18.0-193 of Enterprise Linux 8'

/** `release`: as `uname -r` has it. False where that has no version. */
export function isOldKernel(release: string): boolean {
  const version = kernelVersion(release)
  if (version === undefined) return false
  const [, build = 0] = /^[\d.]+-(\d+)/.exec(release) ?? []
  const enterprise = version === 4018 && release.includes('.el8') && Number(build) >= 193
  return version < 5003 && !enterprise
}

/** 5.10 as 5010; undefined: the text has no such version */
export function kernelVersion(release: string): number | undefined {
  const [, major, minor] = /^(\d+)\.(\d+)\.\d+/.exec(release) ?? []
  return major === undefined || minor === undefined ? undefined : Number(major) * 1000 + Number(minor)
}
