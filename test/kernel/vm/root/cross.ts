// SPDX-License-Identifier: Apache-2.0
/** Builds the addon for another architecture with its Debian cross compiler and that architecture's libbpf.
 * Layer: test. */
import { copyFileSync, cpSync, readFileSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { FACTS } from '../../../../testkit/base/arch.ts'
import type { Arch } from '../../../../testkit/base/arch.ts'
import { cached, keyOf } from '../../../../testkit/base/cache.ts'
import { command } from '../../../../testkit/base/command.ts'
import { hostNodeDir } from './node.ts'

export interface CrossOptions {
  readonly arch: Arch
  /** the repository */
  readonly top: string
  /** the architecture's unpacked library packages */
  readonly sysroot: string
}

/** The libraries the addon was linked with, then the compiler's own: a C library no older than what it built for. */
export function crossLibraryDirs(arch: Arch, sysroot: string): string[] {
  return [...treeLibraryDirs(arch, sysroot), join('/usr', FACTS[arch].triplet, 'lib')]
}

/** Where unpacked packages have their libraries. */
export function treeLibraryDirs(arch: Arch, tree: string): string[] {
  const { triplet } = FACTS[arch]
  return [join(tree, 'usr/lib', triplet), join(tree, 'lib', triplet)]
}

/** The built addon's path. Rebuilt only when a source of it, the compiler or a library changed. */
export async function crossAddon(options: CrossOptions): Promise<string> {
  const { arch, top, sysroot } = options
  const compiler = `${FACTS[arch].triplet}-g++`
  const key = keyOf([await command(compiler, ['--version']), sysroot, ...sources(top).map((file) => readFileSync(file, 'utf8'))])
  const dir = await cached(`addon-${arch}-${key}`, async (half) => {
    const tree = join(half, 'tree')
    cpSync(join(top, 'native'), join(tree, 'native'), { recursive: true })
    copyFileSync(join(top, 'binding.gyp'), join(tree, 'binding.gyp'))
    copyFileSync(join(top, 'package.json'), join(tree, 'package.json'))
    symlinkSync(join(top, 'node_modules'), join(tree, 'node_modules'))
    await build(tree, options)
    const out = join(tree, 'build/Release')
    for (const name of readdirSync(out).filter((file) => file.endsWith('.node'))) copyFileSync(join(out, name), join(half, 'addon.node'))
    rmSync(tree, { recursive: true })
  })
  return join(dir, 'addon.node')
}

/** `node-gyp` writes into `build/` beside its binding file, so it works on a copy. */
async function build(tree: string, { arch, top, sysroot }: CrossOptions): Promise<void> {
  const { triplet, node } = FACTS[arch]
  const dirs = treeLibraryDirs(arch, sysroot)
  const env = {
    CC: `${triplet}-gcc`,
    CXX: `${triplet}-g++`,
    AR: `${triplet}-ar`,
    CXXFLAGS: `-isystem ${join(sysroot, 'usr/include')}`,
    LDFLAGS: dirs.map((dir) => `-L${dir} -Wl,-rpath-link,${dir}`).join(' '),
  }
  const gyp = join(top, 'node_modules/node-gyp/bin/node-gyp.js')
  const args = ['rebuild', '--silent', '--jobs', '2', '--arch', node, '--nodedir', hostNodeDir(top)]
  await command(process.execPath, [gyp, ...args], { cwd: tree, env })
}

function sources(top: string): string[] {
  const native = readdirSync(join(top, 'native')).filter((name) => /\.(cc|h)$/.test(name))
  return ['binding.gyp', ...native.sort().map((name) => join('native', name))].map((name) => join(top, name))
}
