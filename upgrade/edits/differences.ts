// SPDX-License-Identifier: Apache-2.0
/** A manifest as it was, and the objects of the cluster → each field that was edited, with who did it.
 * Layer: upgrade (pure). */
import type { ApiObject } from '#lib/api/resource.ts'
import { deepEqual } from '#lib/base/deep-equal.ts'
import { isObject } from '#lib/base/object.ts'
import type { Raw } from '../stored/outcome.ts'
import { comparable, stepsText } from './comparable.ts'
import type { Difference } from './edit.ts'
import { managersIn } from './managers.ts'

/** Objects of `live` that `base` does not have are another's. */
export function differences(base: readonly ApiObject[], live: readonly ApiObject[]): readonly Difference[] {
  const found = new Map(live.map((object) => [keyOf(object), object]))
  return base.flatMap((object) => differencesOf(object, found.get(keyOf(object))))
}

/** The group alone: a server shows an object in any of the versions that it has. */
function keyOf({ apiVersion, kind, metadata: { namespace = '', name } }: ApiObject): string {
  return [apiVersion.includes('/') ? apiVersion.split('/')[0] : '', kind, namespace, name].join('/')
}

export function resourceText({ kind, metadata: { namespace, name } }: ApiObject): string {
  return `${kind} ${namespace === undefined ? name : `${namespace}/${name}`}`
}

function differencesOf(base: ApiObject, live: ApiObject | undefined): readonly Difference[] {
  const of = { resource: resourceText(base), kind: base.kind, name: base.metadata.name }
  if (live === undefined) return [{ ...of, steps: [], field: '', base: 'installed', mine: undefined, managers: [] }]
  const managers = managersIn(live)
  return changed({ before: comparable(base), after: comparable(live), steps: [] }).map(({ before, after, steps }) => ({
    ...of,
    steps,
    field: stepsText(steps),
    base: before,
    mine: after,
    managers: managers(steps, after),
  }))
}

interface Pair {
  readonly before: unknown
  readonly after: unknown
  readonly steps: readonly string[]
}

/** Each field by itself; what only one of the two has as a whole. */
function changed({ before, after, steps }: Pair): readonly Pair[] {
  if (deepEqual(before, after)) return []
  if (!isObject(before) || !isObject(after)) {
    const whole = before ?? after
    return isObject(whole) && (before === undefined || after === undefined) && isTakenApart(whole, steps)
      ? changed({ before: before ?? {}, after: after ?? {}, steps })
      : [{ before, after, steps }]
  }
  return namesOf(before, after).flatMap((name) => changed({ before: before[name], after: after[name], steps: [...steps, name] }))
}

function namesOf(before: Raw, after: Raw): readonly string[] {
  return [...new Set([...Object.keys(before), ...Object.keys(after)])]
}

/** Each field of these has a destination of its own. */
const MAPS: ReadonlySet<string> = new Set([
  ...['annotations', 'labels', 'nodeSelector', 'resources', 'requests', 'limits', 'updateStrategy', 'rollingUpdate'],
])

function isTakenApart(whole: Raw, steps: readonly string[]): boolean {
  return MAPS.has(steps.at(-1) ?? '') || Object.keys(whole).every((key) => key.startsWith('['))
}
