// SPDX-License-Identifier: Apache-2.0
/** One manifest file → model values and what is wrong with it, by line and field. Layer: lib/manifests. */
import type { Rejected } from '../base/result.ts'
import { identify, parseObject } from '../kube/parse/parse-object.ts'
import type { InternPool } from '../kube/parse/intern.ts'
import { isPolicyMatter } from '../model/kinds.ts'
import { refText } from '../model/ref.ts'
import type { KubeObject } from '../model/snapshot.ts'
import type { Problem } from '../store/source.ts'
import { pathSteps } from './path.ts'
import { Places, readManifest } from './read.ts'
import type { RawObject } from './read.ts'

export interface FileContent {
  /** each object once */
  readonly objects: readonly KubeObject[]
  /** refs of objects that are there but cannot be used: their last good versions stay; where there is none, what is
   * to stand in, if anything */
  readonly unusable: ReadonlyMap<string, KubeObject | undefined>
  /** something could not even be named: nothing of this file may be taken as deleted */
  readonly unsure: boolean
  readonly problems: readonly Problem[]
}

export interface ParsedFile extends FileContent {
  /** as they were written: objects of kinds whose last good versions outlive this process, and what stands in for
   * such that cannot be used */
  readonly raws: ReadonlyMap<KubeObject, unknown>
}

/** Finding a line means a pass over the file: of many errors at once the first ones only get lines. */
export const MOST_PLACED = 20

/** `name` as it is to stand in messages; its ending decides between JSON and YAML. Never throws. */
export function parseFile(name: string, text: string, pool?: InternPool): ParsedFile {
  const read = readManifest(name, text)
  if (read.kind === 'broken') {
    const place = read.line === undefined ? name : `${name}:${read.line}`
    const problems = [{ place, rejected: { ref: '', path: '', reason: read.reason } }]
    return { objects: [], unusable: new Map(), unsure: true, problems, raws: new Map() }
  }
  const objects = new Map<string, KubeObject>()
  const unusable = new Map<string, KubeObject | undefined>()
  const raws = new Map<KubeObject, unknown>()
  const wrong: Wrong[] = []
  let unsure = false
  for (const raw of read.objects) {
    const identified = identify(raw.value)
    if (identified.kind === 'foreign') continue
    if (identified.kind === 'rejected') {
      wrong.push({ raw, rejected: identified.rejected })
      if (identified.ref !== undefined) unusable.set(refText(identified.ref), undefined)
      else if (identified.rejected.ref === '') unsure = true
      continue
    }
    const ref = refText(identified.ref)
    if (objects.has(ref) || unusable.has(ref)) {
      wrong.push({ raw, rejected: { ref, path: '', reason: `is already defined in ${name}` } })
      continue
    }
    const parsed = parseObject(raw.value, identified.ref, pool)
    if (parsed.kind === 'ok') objects.set(ref, parsed.value)
    else unusable.set(ref, parsed.instead)
    const stands = parsed.kind === 'ok' ? parsed.value : parsed.instead
    if (stands !== undefined && isPolicyMatter(stands.kind)) raws.set(stands, raw.value)
    const part = parsed.kind === 'ok' ? { inPart: true as const } : {}
    for (const rejected of parsed.rejected) wrong.push({ raw, rejected, ...part })
  }
  return { objects: [...objects.values()], unusable, unsure, problems: placed(name, text, wrong), raws }
}

interface Wrong extends Omit<Problem, 'place'> {
  readonly raw: RawObject
}

function placed(name: string, text: string, wrong: readonly Wrong[]): readonly Problem[] {
  const places = new Places(name, text)
  return wrong.map(({ raw, ...problem }, at) => {
    const line = at < MOST_PLACED ? places.line(raw, pathSteps(problem.rejected.path)) : undefined
    return { place: line === undefined ? name : `${name}:${line}`, ...problem }
  })
}

/** Finds "services.yaml:12" for fields of objects that are in this file; its name alone where the object is not. */
export function placeFinder(name: string, text: string): (rejected: Rejected) => string {
  const read = readManifest(name, text)
  const places = new Places(name, text)
  const raws = new Map<string, RawObject>()
  for (const raw of read.kind === 'broken' ? [] : read.objects) {
    const identified = identify(raw.value)
    if (identified.kind === 'ours' && !raws.has(refText(identified.ref))) raws.set(refText(identified.ref), raw)
  }
  return ({ ref, path }) => {
    const raw = raws.get(ref)
    const line = raw && places.line(raw, pathSteps(path))
    return line === undefined ? name : `${name}:${line}`
  }
}
