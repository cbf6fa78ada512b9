// SPDX-License-Identifier: Apache-2.0
/** dist/agent/main.js as a few files in the place of some 200: finding, reading and compiling those would be a
 * quarter of what a start costs the main thread. The others stay for programs that import them. Layer: scripts. */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { build } from 'esbuild'
import { BUNDLED, inPackage, PARTS } from './bundling.ts'

const outdir = inPackage('dist/agent')

await rm(join(outdir, PARTS), { recursive: true, force: true })
await build({
  ...BUNDLED,
  entryPoints: [inPackage('agent/main.ts')],
  outdir,
  // for debuggers: they find the sources where they are
  sourcemap: true,
  sourcesContent: false,
  // seldom needed, and large
  external: ['@kubernetes/client-node'],
})
