// SPDX-License-Identifier: Apache-2.0
/** How our programs are made few files of JavaScript. Layer: scripts. */
import { join } from 'node:path'
import type { BuildOptions } from 'esbuild'
import { packageRoot } from '#lib/base/os/package.ts'

export const PARTS = 'parts'

export const BUNDLED = {
  absWorkingDir: packageRoot(),
  chunkNames: `${PARTS}/[name]-[hash]`,
  bundle: true,
  splitting: true,
  platform: 'node',
  format: 'esm',
  target: 'node24',
  conditions: ['source'],
  // packages in the form of CommonJS ask for Node's own modules by it
  banner: { js: "import { createRequire as requireOf } from 'node:module'\nconst require = requireOf(import.meta.url)" },
  logLevel: 'warning',
} as const satisfies BuildOptions

export function inPackage(...path: readonly string[]): string {
  return join(packageRoot(), ...path)
}
