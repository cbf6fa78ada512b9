// SPDX-License-Identifier: Apache-2.0
/** What an upgrade is planned from, as files have it that kubectl has printed. Layer: upgrade. */
import { join } from 'node:path'
import { readFileSync } from 'node:fs'
import { ConfigError, errorText } from '#lib/base/errors.ts'
import { fieldsOf, textOf } from '#lib/base/object.ts'
import { isApiObject } from '#lib/api/resource.ts'
import { readManifest } from '#lib/manifests/read.ts'
import { listTree } from '#lib/manifests/tree.ts'
import type { UpgradeFacts } from './facts.ts'
import { factsOf } from './trim.ts'

/** Of a directory and those below it: objects of any kind, Lists of them, and what `kubectl version -o yaml` prints.
 * Throws ConfigError where a file cannot be read: a plan without its objects would be a wrong one. */
export function factsFromFiles(directory: string): UpgradeFacts {
  const values = filesIn(directory).flatMap(valuesOf)
  const [serverVersion] = values.map(versionIn).filter((version) => version !== '')
  return factsOf({ serverVersion, objects: values.map(({ value }) => value).filter(isApiObject) })
}

function filesIn(directory: string): readonly string[] {
  try {
    const { files, unreadable } = listTree(directory)
    const [first] = unreadable
    if (first !== undefined) throw new ConfigError(join(directory, first[0]), `cannot be read: ${first[1]}`)
    if (files.length === 0) throw new ConfigError(directory, 'has no files of YAML or JSON')
    return files.map((file) => join(directory, file))
  } catch (thrown) {
    throw thrown instanceof ConfigError ? thrown : new ConfigError(directory, `cannot be read: ${errorText(thrown)}`, thrown)
  }
}

interface FileValue {
  readonly file: string
  readonly value: unknown
}

function valuesOf(file: string): readonly FileValue[] {
  const read = readManifest(file, readFileSync(file, 'utf8').replace(/^\uFEFF/, ''))
  if (read.kind === 'broken') throw new ConfigError(read.line === undefined ? file : `${file}:${read.line}`, read.reason)
  const values = read.objects.map(({ value }) => ({ file, value }))
  const other = values.find((one) => !isApiObject(one.value) && versionIn(one) === '')
  if (other !== undefined) throw new ConfigError(file, 'has something in it that is no object of Kubernetes')
  return values
}

/** "v1.34.4"; empty: it is something else. */
function versionIn({ value }: FileValue): string {
  return textOf(fieldsOf(fieldsOf(value)['serverVersion'])['gitVersion'])
}
