// SPDX-License-Identifier: Apache-2.0
/** Objects that files name, all of them checked before anything is written. Layer: cli. */
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { text as textOf } from 'node:stream/consumers'
import type { ApiObject } from '#lib/api/resource.ts'
import { errorCode, errorText } from '#lib/base/errors.ts'
import type { Resource } from '#lib/kube/resources.ts'
import { MOST_PLACED } from '#lib/manifests/file.ts'
import { pathSteps } from '#lib/manifests/path.ts'
import { Places, readManifest } from '#lib/manifests/read.ts'
import { listTree } from '#lib/manifests/tree.ts'
import type { Problem } from '#lib/store/source.ts'
import { refOf, type Checked } from './check.ts'
import type { FileChoice } from './order.ts'

export interface FileObject {
  readonly object: ApiObject
  readonly resource: Resource
}

export interface FilesRead {
  /** in the order of files, each object once */
  readonly objects: readonly FileObject[]
  /** those without `inPart` keep everything from being written */
  readonly problems: readonly Problem[]
}

const STANDARD_INPUT = '-'

/** What is wrong with a value of a file, and the object that it is. */
type Check = (value: unknown) => Checked

/** Never rejects for what is in files, or is not there. */
export async function readFiles(choice: FileChoice, check: Check): Promise<FilesRead> {
  const files = choice.paths.flatMap((path) => namesOf(path, choice.recursive))
  const objects = new Map<string, FileObject>()
  const problems: Problem[] = []
  for (const file of files) {
    if ('reason' in file) {
      problems.push(problemAt(file.name, file.reason))
      continue
    }
    const read = await readText(file.name)
    const content =
      'reason' in read ? { objects: [], problems: [problemAt(shown(file.name), read.reason)] } : contentOf(file.name, read.text, check)
    problems.push(...content.problems)
    for (const one of content.objects) {
      const ref = refOf(one.object)
      if (objects.has(ref)) problems.push({ place: shown(file.name), rejected: { ref, path: '', reason: 'is there twice' } })
      objects.set(ref, one)
    }
    if (content.objects.length + content.problems.length === 0 && !choice.skipEmpty)
      problems.push(problemAt(shown(file.name), 'has no objects (--skip-empty: it may be so)'))
  }
  return { objects: [...objects.values()], problems }
}

type Named = { readonly name: string } | { readonly name: string; readonly reason: string }

function namesOf(path: string, isRecursive: boolean): readonly Named[] {
  if (path === STANDARD_INPUT) return [{ name: path }]
  try {
    if (!statSync(path).isDirectory()) return [{ name: path }]
    const { files, unreadable } = listTree(path)
    const found = files.filter((file) => isRecursive || !file.includes('/')).map((file) => ({ name: join(path, file) }))
    if (found.length === 0) return [{ name: path, reason: 'has no files of YAML or JSON' }]
    return [...found, ...[...unreadable].map(([file, reason]) => ({ name: join(path, file), reason }))]
  } catch (thrown) {
    return [{ name: path, reason: reasonOf(thrown) }]
  }
}

async function readText(name: string): Promise<{ readonly text: string } | { readonly reason: string }> {
  try {
    const text = name === STANDARD_INPUT ? await textOf(process.stdin) : readFileSync(name, 'utf8')
    return { text: text.replace(/^\uFEFF/, '') }
  } catch (thrown) {
    return { reason: reasonOf(thrown) }
  }
}

function reasonOf(thrown: unknown): string {
  return errorCode(thrown) === 'ENOENT' ? 'does not exist' : `cannot be read: ${errorCode(thrown) ?? errorText(thrown)}`
}

function shown(name: string): string {
  return name === STANDARD_INPUT ? 'standard input' : name
}

function problemAt(place: string, reason: string): Problem {
  return { place, rejected: { ref: '', path: '', reason } }
}

/** `name` decides between JSON and YAML, which has JSON in it. */
function contentOf(name: string, text: string, check: Check): FilesRead {
  const read = readManifest(name, text)
  if (read.kind === 'broken') return { objects: [], problems: [problemAt(placeText(name, read.line), read.reason)] }
  const places = new Places(name, text)
  const objects: FileObject[] = []
  const problems: Problem[] = []
  for (const raw of read.objects) {
    const { object, resource, rejected, inPart } = check(raw.value)
    if (object !== undefined && resource !== undefined) objects.push({ object, resource })
    for (const one of rejected) {
      const line = problems.length < MOST_PLACED ? places.line(raw, pathSteps(one.path)) : undefined
      problems.push({ place: placeText(name, line), rejected: one, ...(inPart ? { inPart } : {}) })
    }
  }
  return { objects, problems }
}

function placeText(name: string, line: number | undefined): string {
  return line === undefined ? shown(name) : `${shown(name)}:${line}`
}
