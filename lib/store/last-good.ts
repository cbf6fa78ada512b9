// SPDX-License-Identifier: Apache-2.0
/** Last good versions of what cannot be read at present, kept for the process that comes after this one. Layer: lib/store. */
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
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
  /** why the last write failed */
  #failed: string | undefined

  constructor(path: string) {
    this.#path = path
  }

  /** Why they cannot be kept; undefined when they are. */
  get failed(): string | undefined {
    return this.#failed
  }

  /** None where there is no such file, or it cannot be understood: nothing else is known then. */
  read(): readonly LastGoodObject[] {
    try {
      const parsed: unknown = JSON.parse(readFileSync(this.#path, 'utf8'))
      return Array.isArray(parsed) ? parsed.filter(isLastGood) : []
    } catch {
      return []
    }
  }

  /** Whole or not at all; no file where there are none. */
  write(objects: readonly LastGoodObject[]): void {
    try {
      if (objects.length === 0) rmSync(this.#path, { force: true })
      else {
        mkdirSync(dirname(this.#path), { recursive: true })
        writeFileSync(`${this.#path}.new`, `${JSON.stringify(objects, null, 2)}\n`)
        renameSync(`${this.#path}.new`, this.#path)
      }
      this.#failed = undefined
    } catch (thrown) {
      this.#failed = `last good versions cannot be kept for the next start in ${this.#path} (${errorCode(thrown) ?? errorText(thrown)})`
    }
  }
}

function isLastGood(value: unknown): value is LastGoodObject {
  return isObject(value) && typeof value['file'] === 'string' && 'object' in value
}
