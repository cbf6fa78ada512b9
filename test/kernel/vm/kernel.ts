// SPDX-License-Identifier: Apache-2.0
/** The kernels to boot: those of the table, fetched once, or an image somebody gives. Layer: test. */
import { copyFileSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fetchPackage, unpack } from './apt.ts'
import type { Pin } from './apt.ts'
import type { Arch } from './arch.ts'
import { cached, keyOf } from './cache.ts'
import { modulesInOrder } from './modules.ts'
import type { Module } from './modules.ts'

export type Runner = 'direct' | 'virtme-ng'

export interface KernelRow {
  readonly name: string
  readonly runner: Runner
  readonly pin: Pin
}

export interface Kernel {
  readonly name: string
  readonly arch: Arch
  readonly runner: Runner
  readonly image: string
  /** in the order to load them */
  readonly modules: readonly Module[]
  /** what `uname -r` says, when known without booting */
  readonly release?: string
  readonly note?: string
}

/** For the tests; then what lets a virtual machine have good random numbers early. */
const WANTED = ['virtio_pci', 'virtio_rng', 'veth', 'vxlan', 'dummy', 'sch_ingress', 'cls_bpf', 'act_bpf']
/** For virtme-ng's root and its way back. */
const WANTED_BY_VIRTME = ['virtio_pci', 'virtio_console', '9pnet_virtio', '9p', 'overlay']

/** In the cache: `kernel`, `modules/NNN-name.ko` in order, `release`, and `note` where there is one. */
const FORMAT = 1

export async function fetchKernel(row: KernelRow): Promise<Kernel> {
  const name = `kernels/${row.name}-${keyOf([FORMAT, row.pin, WANTED, WANTED_BY_VIRTME])}`
  const dir = await cached(name, (half) => fillKernel(row, half))
  const modules = readdirSync(join(dir, 'modules')).sort()
  const note = join(dir, 'note')
  return {
    name: row.name,
    arch: row.pin.arch,
    runner: row.runner,
    image: join(dir, 'kernel'),
    modules: modules.map((file) => ({ name: file.slice(4, -3), bytes: readFileSync(join(dir, 'modules', file)) })),
    release: readFileSync(join(dir, 'release'), 'utf8'),
    ...(existsSync(note) ? { note: readFileSync(note, 'utf8') } : {}),
  }
}

export interface GivenKernel {
  readonly image: string
  readonly arch: Arch
  readonly modulesDir?: string
}

/** Any image, with a directory in which modules lie anywhere below; without one everything is taken to be built in. */
export function givenKernel(given: GivenKernel): Kernel {
  if (!existsSync(given.image)) throw new Error(`no kernel image at ${given.image}`)
  const dir = given.modulesDir
  if (dir !== undefined && !existsSync(dir)) throw new Error(`no modules directory at ${dir}`)
  const modules = dir === undefined ? [] : modulesInOrder(dir, WANTED)
  return { name: 'given', arch: given.arch, runner: 'direct', image: given.image, modules }
}

async function fillKernel(row: KernelRow, dir: string): Promise<void> {
  const work = join(dir, 'work')
  const tree = join(work, 'tree')
  mkdirSync(work)
  const { file, note } = await fetchPackage(row.pin, work)
  await unpack(file, tree)
  const lib = [join(tree, 'lib/modules'), join(tree, 'usr/lib/modules')].find((path) => existsSync(path))
  const release = lib === undefined ? undefined : readdirSync(lib)[0]
  if (lib === undefined || release === undefined) throw new Error(`${row.pin.package} holds no modules`)
  const image = join(tree, 'boot', `vmlinuz-${release}`)
  copyFileSync(image, join(dir, 'kernel'))
  mkdirSync(join(dir, 'modules'))
  for (const [index, module] of modulesInOrder(lib, [...WANTED, ...WANTED_BY_VIRTME]).entries()) {
    writeFileSync(join(dir, 'modules', `${String(index).padStart(3, '0')}-${module.name}.ko`), module.bytes)
  }
  writeFileSync(join(dir, 'release'), release)
  if (note !== undefined) writeFileSync(join(dir, 'note'), note)
  rmSync(work, { recursive: true })
}
