// SPDX-License-Identifier: Apache-2.0
/** Makes one file of the payload and all it imports: a guest reads one file quickly and many slowly. Layer: test. */
import { build } from 'esbuild'

export async function bundlePayload(source: string, out: string): Promise<void> {
  await build({
    entryPoints: [source],
    outfile: out,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node24',
    conditions: ['source'],
    logLevel: 'error',
    // Packages in CommonJS ask for the built-in modules by `require`, which a module does not have.
    banner: { js: "import { createRequire as makeRequire } from 'node:module'; const require = makeRequire(import.meta.url);" },
  })
}
