// SPDX-License-Identifier: Apache-2.0
/** Where our pins are, and changing a whole folder of them at once. bpffs refuses names with dots. Layer: agent/dataplane. */
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statfsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { UnsupportedError } from '#lib/base/errors.ts'
import { DEFAULT_PIN_DIR } from '../maps/catalogue.ts'

const BPFFS_MAGIC = 0xcafe4a11

export class Pins {
  readonly dir: string
  readonly maps: string
  readonly programs: string
  readonly links: string

  constructor(dir: string = DEFAULT_PIN_DIR) {
    this.dir = dir
    this.maps = join(dir, 'maps')
    this.programs = join(dir, 'programs')
    this.links = join(dir, 'links')
  }

  /** Makes the folders. Throws UnsupportedError where there is no BPF file system. */
  prepare(): void {
    for (const folder of [this.maps, this.programs, this.links]) makePinFolder(folder)
  }

  map(name: string): string {
    return join(this.maps, name)
  }

  /** A new map while it is being filled; what is found there at start-up was left by a crash. */
  newMap(name: string): string {
    return join(this.maps, `new-${name}`)
  }

  /** A map that another has taken the place of, by id, until nothing more is to be carried over from it. */
  oldMap(name: string, id: number): string {
    return join(this.maps, `${oldPrefix(name)}${id}`)
  }

  /** All of these, the latest first. */
  oldMaps(name: string): string[] {
    const prefix = oldPrefix(name)
    const ids = readdirSync(this.maps).flatMap((pin) => (pin.startsWith(prefix) ? [Number(pin.slice(prefix.length))] : []))
    return ids.sort((a, b) => b - a).map((id) => this.oldMap(name, id))
  }

  generation(id: string): string {
    return join(this.programs, id)
  }

  /** A generation while it is being pinned. */
  newGeneration(id: string): string {
    return join(this.programs, `new-${id}`)
  }

  /** Complete generations. */
  generations(): string[] {
    return existsSync(this.programs) ? readdirSync(this.programs).filter((name) => !name.startsWith('new-')) : []
  }

  /** What a crash left half done. */
  dropUnfinished(): void {
    for (const folder of [this.maps, this.programs]) {
      for (const name of readdirSync(folder)) if (name.startsWith('new-')) rmSync(join(folder, name), { recursive: true })
    }
  }
}

function oldPrefix(name: string): string {
  return `old-${name}-`
}

/** Makes a folder for pins, and those above it. Throws UnsupportedError where there is no BPF file system: asked first, because sysfs
 * answers mkdir with ENOENT, and Node's recursive one then tries for ever. */
export function makePinFolder(folder: string): void {
  let there = folder
  while (!existsSync(there)) there = dirname(there)
  if (statfsSync(there).type !== BPFFS_MAGIC)
    throw new UnsupportedError('bpffs', `${folder} is on no BPF file system: mount one with "mount -t bpf bpf /sys/fs/bpf"`)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
}

/** The file system replaces the old pin in one step. */
export function movePin(from: string, to: string): void {
  renameSync(from, to)
}

export function removePins(path: string): void {
  rmSync(path, { recursive: true, force: true })
}
