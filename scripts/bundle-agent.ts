// SPDX-License-Identifier: Apache-2.0
/** dist/agent/main.js as a few files in the place of some 200: finding, reading and compiling those would be a
 * quarter of what a start costs the main thread. The others stay for programs that import them. Layer: scripts. */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { build } from 'esbuild'
import { packageRoot } from '#lib/base/os/package.ts'

const outdir = join(packageRoot(), 'dist/agent')
const PARTS = 'parts'

await rm(join(outdir, PARTS), { recursive: true, force: true })
await build({
  entryPoints: [join(packageRoot(), 'agent/main.ts')],
  outdir,
  chunkNames: `${PARTS}/[name]-[hash]`,
  bundle: true,
  splitting: true,
  platform: 'node',
  format: 'esm',
  target: 'node24',
  conditions: ['source'],
  // for debuggers: they find the sources where they are
  sourcemap: true,
  sourcesContent: false,
  // seldom needed, and large
  external: ['@kubernetes/client-node'],
  // packages in the form of CommonJS ask for Node's own modules by it
  banner: { js: "import { createRequire as requireOf } from 'node:module'\nconst require = requireOf(import.meta.url)" },
  logLevel: 'warning',
})
