// SPDX-License-Identifier: Apache-2.0
/** The kernels to boot: those of the table, fetched once or images of a folder, or an image that is given.
 * Layer: test. */
import { createHash } from 'node:crypto'
import { copyFileSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fetchPackage, unpack } from './root/apt.ts'
import type { Pin } from './root/apt.ts'
import type { Arch } from '../../../testkit/base/arch.ts'
import { cached, keyOf } from '../../../testkit/base/cache.ts'
import { modulesInOrder } from './root/modules.ts'
import type { Module } from './root/modules.ts'

export type Runner = 'direct' | 'virtme-ng'

/** What of the payload a kernel runs. `objects`: no packets, as where without modules there are no devices. */
export const PARTS = ['all', 'objects'] as const
export type Parts = (typeof PARTS)[number]

export interface Row {
  readonly name: string
  readonly arch: Arch
  /** false: it is booted by `make kernels` only */
  readonly gate: boolean
  /** booted by `make kernels` once more, for the demo */
  readonly demo: boolean
  /** booted by CI once more, for the preflight */
  readonly preflight: boolean
  /** false: it takes no program, and only the preflight has something to say of it */
  readonly isSupported: boolean
}

export interface KernelRow extends Row {
  readonly runner: Runner
  readonly parts: Parts
  /** beside those that every kernel gets */
  readonly modules: readonly string[]
  /** what holds the image, then what holds the modules, where that is another package */
  readonly pins: readonly Pin[]
}

/** A file of the folder of images; all it needs is built in. */
export interface ImageRow extends Row {
  readonly sha256: string
}

export interface Kernel {
  readonly name: string
  readonly arch: Arch
  readonly runner: Runner
  readonly parts: Parts
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
const FORMAT = 2

export async function fetchKernel(row: KernelRow): Promise<Kernel> {
  const name = `kernels/${row.name}-${keyOf([FORMAT, row.pins, WANTED, WANTED_BY_VIRTME, ...row.modules])}`
  const dir = await cached(name, (half) => fillKernel(row, half))
  const modules = readdirSync(join(dir, 'modules')).sort()
  const note = join(dir, 'note')
  return {
    name: row.name,
    arch: row.arch,
    runner: row.runner,
    parts: row.parts,
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
  return { name: 'given', arch: given.arch, runner: 'direct', parts: 'all', image: given.image, modules }
}

/** In the folder `dir`. */
export function imagePath({ name }: Row, dir: string): string {
  return join(dir, `${name}.bzImage`)
}

/** Of the folder `dir`. */
export function imageKernel({ sha256, ...row }: ImageRow, dir: string): Kernel {
  const kernel = { ...givenKernel({ image: imagePath(row, dir), arch: row.arch }), name: row.name }
  const sum = createHash('sha256').update(readFileSync(kernel.image)).digest('hex')
  return sum === sha256 ? kernel : { ...kernel, note: `its sha256 is ${sum}, kernels.json says ${sha256}` }
}

async function fillKernel(row: KernelRow, dir: string): Promise<void> {
  const work = join(dir, 'work')
  const tree = join(work, 'tree')
  mkdirSync(work)
  const notes: string[] = []
  for (const pin of row.pins) {
    const { file, note } = await fetchPackage(pin, work)
    await unpack(file, tree)
    rmSync(file)
    if (note !== undefined) notes.push(note)
  }
  const { image, release, lib } = findKernel(tree)
  copyFileSync(image, join(dir, 'kernel'))
  mkdirSync(join(dir, 'modules'))
  const modules = existsSync(lib) ? modulesInOrder(lib, [...WANTED, ...WANTED_BY_VIRTME, ...row.modules]) : []
  for (const [index, module] of modules.entries()) {
    writeFileSync(join(dir, 'modules', `${String(index).padStart(3, '0')}-${module.name}.ko`), module.bytes)
  }
  writeFileSync(join(dir, 'release'), release)
  if (notes.length > 0) writeFileSync(join(dir, 'note'), notes.join('; '))
  rmSync(work, { recursive: true })
}

/** In unpacked packages: `boot/vmlinuz-RELEASE`, or since 7.2 `usr/lib/modules/RELEASE/vmlinuz`. */
function findKernel(tree: string): { readonly image: string; readonly release: string; readonly lib: string } {
  const lib = [join(tree, 'lib/modules'), join(tree, 'usr/lib/modules')].find((path) => existsSync(path)) ?? join(tree, 'lib/modules')
  const boot = join(tree, 'boot')
  const inBoot = existsSync(boot) ? readdirSync(boot).find((name) => name.startsWith('vmlinuz-')) : undefined
  if (inBoot !== undefined) return { image: join(boot, inBoot), release: inBoot.slice('vmlinuz-'.length), lib }
  const release = existsSync(lib) ? readdirSync(lib).find((name) => existsSync(join(lib, name, 'vmlinuz'))) : undefined
  if (release === undefined) throw new Error('the packages hold no kernel image')
  return { image: join(lib, release, 'vmlinuz'), release, lib }
}
