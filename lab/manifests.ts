// SPDX-License-Identifier: Apache-2.0
/** Reads the manifests of a directory as plain objects. Layer: lab. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { loadAll } from 'js-yaml'
import { errorText } from '#lib/base/errors.ts'
import { LabError } from './errors.ts'
import { isObject, listAt, textAt } from './raw.ts'

/** Every document of every *.yaml, *.yml and *.json directly in `dir`, lists opened. Throws LabError for a file that cannot be read. */
export function readManifests(dir: string): unknown[] {
  const files = readdirSync(dir).filter((name) => /\.(ya?ml|json)$/.test(name)).sort()
  return files.flatMap((name) => {
    try {
      const documents: unknown[] = loadAll(readFileSync(join(dir, name), 'utf8'))
      return documents.filter(isObject).flatMap((document) => (/List$/.test(textAt(document, 'kind') ?? '') ? listAt(document, 'items') : [document]))
    } catch (thrown) {
      throw new LabError(name, errorText(thrown), thrown)
    }
  })
}
