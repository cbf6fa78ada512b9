// SPDX-License-Identifier: Apache-2.0
/** containerd 2 and the portmap of its time, built from their Go modules once and kept in the cache directory:
 * Debian 12 has neither. Layer: testkit. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { packageRoot } from '#lib/base/os/package.ts'
import { hostArch } from '../../base/arch.ts'
import { cached, keyOf } from '../../base/cache.ts'
import { runGo } from './go.ts'

/** The programs, as runtime/go.mod has them. */
const TOOLS = [
  'github.com/containerd/containerd/v2/cmd/containerd',
  'github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2',
  'github.com/containernetworking/plugins/plugins/meta/portmap',
] as const

/** The folder with containerd, its shim, and portmap; built when this version of them is not there yet, which takes
 * three CPU minutes. */
export async function newerRuntime(): Promise<string> {
  const folder = join(packageRoot(), 'testkit/kubernetes/build/runtime')
  const sources = ['go.mod', 'go.sum'].map((name) => readFileSync(join(folder, name), 'utf8'))
  return await cached(`runtime-${keyOf([hostArch(), ...sources])}`, async (half) => {
    for (const tool of TOOLS) await runGo(folder, ['build', '-o', join(half, tool.split('/').at(-1) ?? ''), tool])
  })
}
