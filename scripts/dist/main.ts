// SPDX-License-Identifier: Apache-2.0
/** netplanectl for machines that are no node: one archive a processor in build/, with Node in it, or only those of
 * the processors that are named. Verbs on objects need no addon, so none is in it. Layer: scripts. */
import { execFile } from 'node:child_process'
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import { packageVersion } from '#lib/base/os/package.ts'
import { BUNDLED, inPackage } from '../bundling.ts'
import { nodeFor, PROCESSORS, type Processor } from './node.ts'

const run = promisify(execFile)

/** As kubectl's archives have them. */
const SHOWN: { readonly [processor in Processor]: string } = { x64: 'amd64', arm64: 'arm64' }

/** It finds its files through links to it. */
const LAUNCHER = `#!/bin/sh
home=$(dirname "$(readlink -f "$0")")/../lib
exec "$home/node" "$home/dist/cli/main.js" "$@"
`

/** kubectl runs a program of this name for "kubectl netplane". */
const PLUGIN = 'kubectl-netplane'

/** The same files make the same archive. */
const SAME = ['--sort=name', '--mtime=2020-01-01T00:00:00Z', '--owner=0', '--group=0', '--numeric-owner', '--mode=go-w']

/** Returns the archive's path. */
export async function writeDist(processor: Processor, into: string): Promise<string> {
  const name = `netplanectl-v${packageVersion()}-linux-${SHOWN[processor]}`
  const work = mkdtempSync(join(tmpdir(), 'netplanectl-'))
  try {
    await fill(join(work, name), await nodeFor(processor))
    const archive = join(into, `${name}.tar.gz`)
    mkdirSync(into, { recursive: true })
    await run('tar', [...SAME, '-C', work, '-I', 'gzip -n', '-cf', archive, name])
    return archive
  } finally {
    rmSync(work, { recursive: true })
  }
}

async function fill(folder: string, node: string): Promise<void> {
  const [bin, lib] = [join(folder, 'bin'), join(folder, 'lib')]
  for (const made of [bin, lib]) mkdirSync(made, { recursive: true })
  await build({
    ...BUNDLED,
    // the second is a thread of its own, which the first starts by this path
    entryPoints: [inPackage('cli/main.ts'), inPackage('lib/manifests/reader-thread.ts')],
    outbase: inPackage(),
    outdir: join(lib, 'dist'),
    minifySyntax: true,
    minifyWhitespace: true,
  })
  copyFileSync(join(node, 'bin/node'), join(lib, 'node'))
  chmodSync(join(lib, 'node'), 0o755)
  copyFileSync(join(node, 'LICENSE'), join(lib, 'LICENSE.node'))
  copyFileSync(inPackage('LICENSE'), join(folder, 'LICENSE'))
  writeFileSync(join(lib, 'package.json'), `${JSON.stringify({ name: 'netplane', version: packageVersion(), type: 'module' })}\n`)
  writeFileSync(join(bin, 'netplanectl'), LAUNCHER, { mode: 0o755 })
  symlinkSync('netplanectl', join(bin, PLUGIN))
}

async function main(named: readonly string[]): Promise<void> {
  for (const processor of PROCESSORS) {
    if (named.length > 0 && !named.includes(processor)) continue
    process.stdout.write(`  dist    ${await writeDist(processor, inPackage('build'))}\n`)
  }
}

if (import.meta.main) await main(process.argv.slice(2))
