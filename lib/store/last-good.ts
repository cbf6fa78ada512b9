// SPDX-License-Identifier: Apache-2.0
/** Last good versions of what cannot be read at present, kept for the process that comes after this one.
 * Layer: lib/store. */
import { existsSync, readFileSync } from 'node:fs'
import { removeDurably, writeDurably } from '../base/os/durable-file.ts'
import { errorCode, errorText } from '../base/errors.ts'
import { isObject } from '../base/object.ts'

/** An object as its file had it: what parsers make of it may be something else in the next version of this program. */
export interface LastGoodObject {
  /** where it was: a file of the directory, a path of the API */
  readonly file: string
  readonly object: unknown
}

export class LastGoodFile {
  readonly #path: string
  /** why the last attempt failed */
  #failed: string | undefined

  constructor(path: string) {
    this.#path = path
  }

  /** Why they cannot be kept; undefined when they are. */
  get failed(): string | undefined {
    return this.#failed
  }

  /** None where there is no such file; when it cannot be understood either, and {@link failed} says so. */
  read(): readonly LastGoodObject[] {
    try {
      const parsed: unknown = JSON.parse(readFileSync(this.#path, 'utf8'))
      return Array.isArray(parsed) ? parsed.filter(isLastGood) : []
    } catch (thrown) {
      if (errorCode(thrown) !== 'ENOENT')
        this.#failed = `last good versions of the process before cannot be read in ${this.#path} (${errorCode(thrown) ?? errorText(thrown)})`
      return []
    }
  }

  /** Whole or not at all; no file where there are none. */
  write(objects: readonly LastGoodObject[]): void {
    try {
      if (objects.length > 0) writeDurably(this.#path, `${JSON.stringify(objects, null, 2)}\n`)
      else if (existsSync(this.#path)) removeDurably(this.#path)
      this.#failed = undefined
    } catch (thrown) {
      this.#failed = `last good versions cannot be kept for the next start in ${this.#path} (${errorCode(thrown) ?? errorText(thrown)})`
    }
  }
}

function isLastGood(value: unknown): value is LastGoodObject {
  return isObject(value) && typeof value['file'] === 'string' && 'object' in value
}
