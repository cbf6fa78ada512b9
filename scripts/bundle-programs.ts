// SPDX-License-Identifier: Apache-2.0
/** dist/PROGRAM/main.js as a few files in the place of some 200: finding, reading and compiling those would be a
 * quarter of what the agent's start costs the main thread, and half of a command of netplanectl. The others stay for
 * programs that import them. Layer: scripts. */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { build } from 'esbuild'
import { BUNDLED, inPackage, PARTS } from './bundling.ts'

for (const program of ['agent', 'cli', 'controllers', 'operator']) {
  const outdir = inPackage('dist', program)
  await rm(join(outdir, PARTS), { recursive: true, force: true })
  await build({
    ...BUNDLED,
    entryPoints: [inPackage(program, 'main.ts')],
    outdir,
    // for debuggers: they find the sources where they are
    sourcemap: true,
    sourcesContent: false,
    // seldom needed, and large
    external: ['@kubernetes/client-node'],
  })
}
