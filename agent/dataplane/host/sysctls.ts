// SPDX-License-Identifier: Apache-2.0
/** Sets sysctls, remembering what they were so that they can be put back. Layer: agent/dataplane. */
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { writeDurably } from '#lib/base/os/durable-file.ts'
import { errorCode, errorText } from '#lib/base/errors.ts'
import { sortedEntries } from '#lib/base/order.ts'
import { failure, type Failure, type Outcome, type ReconcileStep } from '../reconcile/step.ts'

export interface SysctlOptions {
  /** the file with the old values */
  readonly stateFile: string
  /** /proc/sys; another directory in tests */
  readonly root?: string | undefined
}

const PROC_SYS = '/proc/sys'
const OF_INTERFACE = /^net\/ipv[46]\/conf\/(?!(all|default)\/)/
/** That the node forwards IPv6. The kernel takes no router's word any more then, and forgets what it has learned, but
 * where `accept_ra` is 2. */
export const FORWARDING_V6 = 'net/ipv6/conf/all/forwarding'
const ACCEPT_RA = /\/accept_ra$/

/** undefined: as it was before an agent set it. */
export type Wanted = string | undefined | WantedInstead

export interface WantedInstead {
  readonly value: string
  /** The file is changed only while it has this value. */
  readonly insteadOf: string
  /** The path of the sysctl whose change by an agent makes this one needed. Nothing is written where no agent changed
   * that one. */
  readonly because: string
}

/** The kernel goes by the larger one of this and the interface's own: what is to be off for one interface has to be
 * off here. */
export const REVERSE_PATH_OF_ALL = 'net/ipv4/conf/all/rp_filter'

export class Sysctls implements ReconcileStep {
  readonly name = 'sysctls'
  readonly #stateFile: string
  readonly #root: string
  #desired: ReadonlyMap<string, Wanted> = new Map()
  #dirty = false
  /** the next check is of interfaces' as well */
  #all = false

  constructor(options: SysctlOptions) {
    this.#stateFile = options.stateFile
    this.#root = options.root ?? PROC_SYS
  }

  /** Path below /proc/sys ("net/ipv4/ip_forward") → value. */
  setDesired(sysctls: Readonly<Record<string, Wanted>>): void {
    this.#desired = new Map(Object.entries(sysctls))
    this.#dirty = true
  }

  pending(): boolean {
    return this.#dirty
  }

  /** Marks all of them to be looked at again. */
  markStale(): void {
    this.#dirty = this.#desired.size > 0
  }

  /** Has the next {@link check} look at those of interfaces as well. */
  lookAtAll(): void {
    this.#all = true
  }

  /** Looks at those that are not of one interface, of which there are few; returns which have another value. They are
   * set by the next pass. */
  check(): string[] {
    const isLookedAt = (path: string): boolean => this.#all || !OF_INTERFACE.test(path)
    const other = this.#dirty ? [] : [...this.#desired].filter(([path, wanted]) => isLookedAt(path) && this.#isOther(path, wanted))
    this.#all = false
    this.#dirty ||= other.length > 0
    return other.map(([path]) => path)
  }

  apply(): Outcome {
    const failures: Failure[] = []
    let done = 0
    for (const [path, wanted] of inOrder(this.#desired)) {
      // the kernel would forget what it has learned
      if (path === FORWARDING_V6 && wanted !== undefined && failures.some(({ item }) => ACCEPT_RA.test(item))) continue
      try {
        if (this.#bring(path, wanted)) done++
      } catch (thrown) {
        if (!this.#isOfGone(path, thrown)) failures.push(failure(path, thrown))
      }
    }
    this.#dirty = failures.length > 0
    return { done, failures }
  }

  #isOther(path: string, wanted: Wanted): boolean {
    try {
      if (wanted === undefined) return readSaved(this.#stateFile).has(path)
      const value = readFileSync(join(this.#root, path), 'utf8').trim()
      return typeof wanted === 'string' ? value !== wanted : this.#isToChange(value, wanted)
    } catch (thrown) {
      return !this.#isOfGone(path, thrown) // the next pass says why
    }
  }

  /** An interface that has gone is wanted until its message has been read; one that comes brings its settings along. */
  #isOfGone(path: string, thrown: unknown): boolean {
    return errorCode(thrown) === 'ENOENT' && OF_INTERFACE.test(path) && !this.#exists(dirname(path))
  }

  /** Those of interfaces that are gone need no remembering: pods come and go. */
  #exists(path: string): boolean {
    return existsSync(join(this.#root, path))
  }

  /** Interfaces get what held for all of them, now and in future, but for those that are wanted otherwise. */
  #handDown(value: string): void {
    const folder = dirname(dirname(REVERSE_PATH_OF_ALL))
    for (const name of readdirSync(join(this.#root, folder))) {
      const path = `${folder}/${name}/rp_filter`
      if (path === REVERSE_PATH_OF_ALL || this.#desired.has(path) || !this.#exists(path)) continue
      if (Number(readFileSync(join(this.#root, path), 'utf8')) < Number(value)) this.#set(path, value)
    }
  }

  #bring(path: string, wanted: Wanted): boolean {
    if (wanted === undefined) return this.#putBack(path)
    if (typeof wanted === 'string') return this.#set(path, wanted)
    const value = readFileSync(join(this.#root, path), 'utf8').trim()
    return this.#isToChange(value, wanted) && this.#set(path, wanted.value)
  }

  #isToChange(value: string, { insteadOf, because }: WantedInstead): boolean {
    return value === insteadOf && this.#isByAgent(because)
  }

  /** An agent has set it, or is about to. */
  #isByAgent(path: string): boolean {
    if (readSaved(this.#stateFile).has(path)) return true
    return readFileSync(join(this.#root, path), 'utf8').trim() !== this.#desired.get(path)
  }

  /** Nothing happens where no agent has set it. */
  #putBack(path: string): boolean {
    const saved = new Map(readSaved(this.#stateFile))
    const value = saved.get(path)
    if (value === undefined) return false
    overwrite(join(this.#root, path), value)
    saved.delete(path)
    writeSaved(this.#stateFile, saved)
    return true
  }

  #set(path: string, value: string): boolean {
    const file = join(this.#root, path)
    const before = readFileSync(file, 'utf8').trim()
    if (before === value) return false
    if (path === REVERSE_PATH_OF_ALL) this.#handDown(before)
    const saved = readSaved(this.#stateFile)
    if (!saved.has(path)) writeSaved(this.#stateFile, new Map([...saved, [path, before] as const].filter(([known]) => this.#exists(known))))
    overwrite(file, value)
    return true
  }
}

/** What routers say is taken whether the node forwards or not, before it does. */
function inOrder(desired: ReadonlyMap<string, Wanted>): readonly (readonly [string, Wanted])[] {
  const all = sortedEntries(desired)
  const isFirst = ([path]: readonly [string, Wanted]): boolean => ACCEPT_RA.test(path)
  return [...all.filter(isFirst), ...all.filter((one) => !isFirst(one))]
}

/** Puts the remembered values back and forgets them; returns what was done, one line each. One whose interface is
 * gone is skipped, one that is refused stays remembered. */
export function restoreSysctls(options: SysctlOptions): { readonly restored: readonly string[]; readonly failed: readonly string[] } {
  const [restored, failed]: [string[], string[]] = [[], []]
  const kept = new Map<string, string>()
  for (const [path, value] of sortedEntries(readSaved(options.stateFile))) {
    try {
      overwrite(join(options.root ?? PROC_SYS, path), value)
      restored.push(`sysctl ${path} = ${value}`)
    } catch (thrown) {
      if (errorCode(thrown) === 'ENOENT') continue
      kept.set(path, value)
      failed.push(`sysctl ${path} = ${value}: ${errorText(thrown)}`)
    }
  }
  if (kept.size === 0) rmSync(options.stateFile, { force: true })
  else writeSaved(options.stateFile, kept)
  return { restored, failed }
}

/** Never makes a file: a sysctl is there or not. */
function overwrite(file: string, value: string): void {
  writeFileSync(file, value, { flag: 'r+' })
}

/** An unreadable file counts as empty: then the present values are the oldest known. */
function readSaved(file: string): ReadonlyMap<string, string> {
  try {
    const parsed: unknown = JSON.parse(readFileSync(file, 'utf8'))
    if (typeof parsed !== 'object' || parsed === null) return new Map()
    return new Map(Object.entries(parsed).filter((entry): entry is [string, string] => typeof entry[1] === 'string'))
  } catch {
    return new Map()
  }
}

/** Whole or not at all: a torn file would lose the values for good. */
function writeSaved(file: string, saved: ReadonlyMap<string, string>): void {
  writeDurably(file, `${JSON.stringify(Object.fromEntries(saved), null, 2)}\n`)
}
