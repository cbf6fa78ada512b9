// SPDX-License-Identifier: Apache-2.0
/** Gathers what every guest of an architecture runs on: a shell, Node, the addon and where their libraries lie.
 * Layer: test. */
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fetchPackage, unpack } from './apt.ts'
import type { Pin } from './apt.ts'
import { FACTS, hostArch } from '../../../../testkit/base/arch.ts'
import type { Arch } from '../../../../testkit/base/arch.ts'
import { cached, keyOf } from '../../../../testkit/base/cache.ts'
import { crossAddon, crossLibraryDirs, treeLibraryDirs } from './cross.ts'
import { nodeFor } from './node.ts'

export interface Userland {
  readonly arch: Arch
  readonly busybox: string
  readonly ip: string
  readonly nft: string
  readonly node: string
  readonly addon: string
  /** in order of preference */
  readonly libraryDirs: readonly string[]
}

export interface Packages {
  readonly userland: readonly Pin[]
  readonly sysroot: readonly Pin[]
}

/** `top` is the repository, with this machine's own addon built. */
export async function userlandFor(arch: Arch, top: string, packages: Packages): Promise<Userland> {
  const tree = await unpacked('userland', arch, packages.userland)
  const tools = {
    arch,
    busybox: join(tree, 'bin/busybox'),
    ip: join(tree, 'bin/ip'),
    nft: join(tree, 'usr/sbin/nft'),
    node: await nodeFor(arch, top),
  }
  if (arch === hostArch()) {
    const addon = join(top, 'build/Release/netplane_native.node')
    return { ...tools, addon, libraryDirs: [...hostLibraryDirs(arch), ...treeLibraryDirs(arch, tree)] }
  }
  const sysroot = await unpacked('sysroot', arch, packages.sysroot)
  const addon = await crossAddon({ arch, top, sysroot })
  return { ...tools, addon, libraryDirs: [...crossLibraryDirs(arch, sysroot), ...treeLibraryDirs(arch, tree)] }
}

async function unpacked(name: string, arch: Arch, all: readonly Pin[]): Promise<string> {
  const pins = all.filter((pin) => pin.arch === arch)
  if (pins.length === 0) throw new Error(`kernels.json names no ${name} packages for ${arch}`)
  return cached(`${name}-${arch}-${keyOf(pins)}`, async (half) => {
    const work = join(half, 'work')
    mkdirSync(work)
    for (const pin of pins) {
      const { file, note } = await fetchPackage(pin, work)
      if (note !== undefined) console.log(`note: ${note}`)
      await unpack(file, half)
    }
    rmSync(work, { recursive: true })
  })
}

function hostLibraryDirs(arch: Arch): string[] {
  const { triplet } = FACTS[arch]
  return [`/lib/${triplet}`, `/usr/lib/${triplet}`, '/lib64', '/usr/lib64', '/lib', '/usr/lib']
}
