// SPDX-License-Identifier: Apache-2.0
/** Which modules a virtual machine was given. Layer: test. */
import { existsSync, readdirSync } from 'node:fs'

const MODULES = '/netplane/modules'

/** Then the kernel must have it. */
export function isGiven(module: string): boolean {
  if (!existsSync(MODULES) || !readdirSync(MODULES).some((name) => name.endsWith(`-${module}.ko`))) return false
  if (!existsSync(`/sys/module/${module}`)) throw new Error(`module ${module} is not loaded`)
  return true
}
