// SPDX-License-Identifier: Apache-2.0
/** Files of manifests that are not in force yet: what is in them, and what is wrong with them. Layer: cli. */
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { ConfigError, errorText } from '#lib/base/errors.ts'
import { identify } from '#lib/kube/parse/parse-object.ts'
import { isObject } from '#lib/base/object.ts'
import { parseFile } from '#lib/manifests/file.ts'
import { readManifest } from '#lib/manifests/read.ts'
import { listTree } from '#lib/manifests/tree.ts'
import { refText } from '#lib/model/ref.ts'
import type { KubeObject } from '#lib/model/snapshot.ts'
import type { Problem } from '#lib/store/source.ts'

export interface Candidates {
  readonly objects: readonly KubeObject[]
  /** refs of those that cannot be used → what stands in where there is no good version in force, if anything */
  readonly unusable: ReadonlyMap<string, KubeObject | undefined>
  readonly problems: readonly Problem[]
  /** what Netplane does not read: "Deployment of apps/v1", a misspelt kind as well */
  readonly foreign: readonly string[]
}

/** A file, or all manifests of a directory. Throws ConfigError when there is no such thing. */
export function readCandidates(path: string): Candidates {
  const files = namesOf(path)
  const contents = files.map(({ name, file }) => {
    const text = readText(file)
    return { ...parseFile(name, text), foreign: foreignIn(name, text) }
  })
  return {
    objects: contents.flatMap(({ objects }) => objects),
    unusable: new Map(contents.flatMap(({ unusable }) => [...unusable])),
    problems: contents.flatMap(({ problems }) => problems),
    foreign: contents.flatMap(({ foreign }) => foreign),
  }
}

/** As they would come into force in a cluster that has `known` already. */
export function inForce({ objects, unusable }: Candidates, known: ReadonlySet<string>): readonly KubeObject[] {
  const instead = [...unusable].flatMap(([ref, object]) => (object === undefined || known.has(ref) ? [] : [object]))
  return [...objects, ...instead]
}

export function refsOf(objects: Iterable<KubeObject>): ReadonlySet<string> {
  return new Set([...objects].map((object) => refText(object)))
}

function namesOf(path: string): readonly { readonly name: string; readonly file: string }[] {
  const stat = statSync(path, { throwIfNoEntry: false })
  if (stat === undefined) throw new ConfigError(path, 'does not exist')
  if (!stat.isDirectory()) return [{ name: path, file: path }]
  return listTree(path).files.map((name) => ({ name, file: join(path, name) }))
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8').replace(/^\uFEFF/, '')
  } catch (thrown) {
    throw new ConfigError(file, errorText(thrown), thrown)
  }
}

function foreignIn(name: string, text: string): readonly string[] {
  const read = readManifest(name, text)
  if (read.kind === 'broken') return []
  return read.objects.flatMap(({ value }) => {
    if (identify(value).kind !== 'foreign' || !isObject(value)) return []
    const { apiVersion, kind } = value
    return [`${name}: ${typeof kind === 'string' ? kind : 'an object'} of ${typeof apiVersion === 'string' ? apiVersion : 'no API'}`]
  })
}
