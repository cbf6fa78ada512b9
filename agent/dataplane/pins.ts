// SPDX-License-Identifier: Apache-2.0
/** Where our pins are, and changing a whole folder of them at once. bpffs refuses names with dots.
 * Layer: agent/dataplane. */
import {
  chmodSync,
  existsSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmdirSync,
  rmSync,
  statfsSync,
  statSync,
  type Stats,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { UnsupportedError } from '#lib/base/errors.ts'
import { DEFAULT_PIN_DIR } from '../maps/catalogue.ts'

const BPFFS_MAGIC = 0xcafe4a11

/** A folder, or another file of that name, that another user owned: it was removed with all that was in it. */
export interface Foreign {
  readonly path: string
  readonly uid: number
}

export class Pins {
  readonly #onForeign: (foreign: Foreign) => void
  readonly dir: string
  readonly maps: string
  readonly programs: string
  readonly links: string

  constructor(dir: string = DEFAULT_PIN_DIR, onForeign: (foreign: Foreign) => void = () => undefined) {
    this.#onForeign = onForeign
    this.dir = dir
    this.maps = join(dir, 'maps')
    this.programs = join(dir, 'programs')
    this.links = join(dir, 'links')
  }

  /** Makes the folders, without what others have made there. Throws UnsupportedError where there is no BPF file
   * system for us. */
  prepare(): void {
    this.disown()
    for (const folder of [this.maps, this.programs, this.links]) makePinFolder(folder)
  }

  /** Removes folders that another user made: their owner may change what is in them, and lead the agent to other pins.
   * Must be called before any pin is opened. Throws as above, but not where there is no BPF file system. */
  disown(): void {
    for (const folder of [this.maps, this.programs, this.links])
      for (const path of wayTo(folder) ?? []) {
        const stat = lstatSync(path, { throwIfNoEntry: false })
        if (stat === undefined) break
        if (isOurs(stat) || !isWithin(this.dir, path)) continue
        removeForeign(path)
        this.#onForeign({ path, uid: stat.uid })
      }
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

/** Makes a folder for pins, and those above it, for us alone. Throws UnsupportedError where there is no BPF file
 * system (sysfs answers mkdir with ENOENT), and where others may change what is there. */
export function makePinFolder(folder: string): void {
  const way = wayTo(folder)
  if (way === undefined) throw new UnsupportedError('bpffs', `${folder} is on no BPF file system: ${MOUNT}`)
  for (const path of way) {
    const stat = lstatSync(path, { throwIfNoEntry: false })
    if (stat === undefined) mkdirSync(path, { mode: OURS })
    else if (!isOurs(stat) || !stat.isDirectory()) throw new UnsupportedError('bpffs', `${path} is no folder of ours (user ${stat.uid})`)
    else if ((stat.mode & 0o777) !== OURS) chmodSync(path, OURS)
  }
}

/** Why pins would not be safe in a folder that is on a BPF file system; undefined: they would, or it is on none.
 * Touches nothing. */
export function whyPinsUnsafe(folder: string): string | undefined {
  try {
    wayTo(folder)
    return undefined
  } catch (thrown) {
    if (thrown instanceof UnsupportedError) return thrown.message
    throw thrown
  }
}

/** Whether this folder is on a BPF file system; false where there is no such folder. */
export function isBpffs(folder: string): boolean {
  return existsSync(folder) && statfsSync(folder).type === BPFFS_MAGIC
}

const OURS = 0o700
const STICKY = 0o1000
const MOUNT = 'mount one with "mount -t bpf -o mode=700 bpf /sys/fs/bpf"'

/** From the mount, which is not among them, down to the folder, which need not be there; undefined where none is
 * mounted. Throws UnsupportedError where others may take away what we make there. */
function wayTo(folder: string): readonly string[] | undefined {
  const all: string[] = []
  for (let at = resolve(folder); at !== dirname(at); at = dirname(at)) all.unshift(at)
  const mount = all.findIndex(isBpffs)
  const root = all[mount]
  if (root === undefined) return undefined
  const stat = statSync(root)
  if (!isOurs(stat) || ((stat.mode & 0o022) !== 0 && (stat.mode & STICKY) === 0))
    throw new UnsupportedError('bpffs', `others may change what is in ${root}: ${MOUNT}`)
  return all.slice(mount + 1)
}

function isOurs({ uid }: Stats): boolean {
  return uid === process.geteuid?.()
}

function isWithin(dir: string, path: string): boolean {
  return path === resolve(dir) || path.startsWith(`${resolve(dir)}/`)
}

/** Each is made ours before it is looked at: from then on no other user can put another one, or a symbolic link, in its
 * place. */
function removeForeign(path: string): void {
  lchownSync(path, process.geteuid?.() ?? 0, process.getegid?.() ?? 0)
  if (!lstatSync(path).isDirectory()) {
    rmSync(path)
    return
  }
  chmodSync(path, OURS)
  for (const name of readdirSync(path)) removeForeign(join(path, name))
  rmdirSync(path)
}

/** The file system replaces the old pin in one step. */
export function movePin(from: string, to: string): void {
  renameSync(from, to)
}

export function removePins(path: string): void {
  rmSync(path, { recursive: true, force: true })
}
