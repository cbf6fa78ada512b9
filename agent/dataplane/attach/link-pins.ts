// SPDX-License-Identifier: Apache-2.0
/** BPF links that outlive the agent by their pins. Layer: agent/dataplane. */
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { BpfLink } from '#native'
import { errorCode } from '#lib/base/errors.ts'
import { pinKey, pinName } from './hook.ts'
import { makePinFolder } from '../pins.ts'

/** Keeps every link open: a process that removes a pin does not detach the program with it. */
export class LinkPins implements Disposable {
  readonly #dir: string
  readonly #links = new Map<string, BpfLink>()

  /** `dir` is made when the first link is pinned */
  constructor(dir: string) {
    this.#dir = dir
  }

  /** The link, opened by its pin if need be; undefined when there is none. */
  get(key: string): BpfLink | undefined {
    const known = this.#links.get(key)
    if (known !== undefined) return known
    try {
      const link = BpfLink.openPin(this.#path(key))
      this.#links.set(key, link)
      return link
    } catch (thrown) {
      if (errorCode(thrown) === 'ENOENT') return undefined
      throw thrown
    }
  }

  isPinned(key: string): boolean {
    return existsSync(this.#path(key))
  }

  /** Pins a link and keeps it; a new one that cannot be pinned is closed, so that nothing is left half done. */
  put(key: string, link: BpfLink): void {
    try {
      makePinFolder(this.#dir)
      link.pin(this.#path(key))
      this.#links.set(key, link)
    } catch (thrown) {
      if (this.#links.get(key) !== link) link.close()
      throw thrown
    }
  }

  /** Ends the link, unpins and closes it. */
  drop(key: string): void {
    const link = this.get(key)
    // without its last reference it would end as well, but some time later; before 5.9 there is no other way
    if (link !== undefined) attemptDetach(link)
    rmSync(this.#path(key), { force: true })
    link?.close()
    this.#links.delete(key)
  }

  /** Keys of all pins. */
  list(): string[] {
    return existsSync(this.#dir) ? readdirSync(this.#dir).map(pinKey) : []
  }

  /** Lets go of the links; the pins keep them. */
  [Symbol.dispose](): void {
    for (const link of this.#links.values()) link.close()
    this.#links.clear()
  }

  #path(key: string): string {
    return join(this.#dir, pinName(key))
  }
}

function attemptDetach(link: BpfLink): void {
  try {
    link.detach()
  } catch {
    // the interface is gone, or the kernel cannot: closing the link does it then
  }
}
