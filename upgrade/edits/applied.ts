// SPDX-License-Identifier: Apache-2.0
/** What an apply of this version's objects does with what an administrator wrote into older ones.
 * Layer: upgrade (pure). */
import type { ApiObject } from '#lib/api/resource.ts'
import { deepEqual } from '#lib/base/deep-equal.ts'
import { comparable } from './comparable.ts'
import { resourceText } from './differences.ts'
import type { Applied, Difference } from './edit.ts'
import { CLIENT_SIDE_APPLY, valueIn } from './managers.ts'

/** What is already as this version wants it: an upgrade that was cut off has written it, or an administrator what comes
 * to the same. */
export function isRendered(target: readonly ApiObject[]): (edit: Difference) => boolean {
  const valueOf = valuesOf(target)
  return ({ mine, ...edit }) => mine !== undefined && deepEqual(valueOf(edit), mine)
}

/** Server-side apply takes away what it has written before, and with it what `kubectl apply` has. A field that another
 * manager has alone stays, without a word. */
export function appliedBy(target: readonly ApiObject[]): (edit: Difference) => Applied {
  const known = new Set(target.map(resourceText))
  const valueOf = valuesOf(target)
  return ({ resource, steps, mine, managers }) => {
    if (!known.has(resource)) return 'goes'
    if (valueOf({ resource, steps }) !== undefined) return 'overwritten'
    const isTakenOver = managers.length > 0 && managers.every((manager) => manager === CLIENT_SIDE_APPLY)
    return mine === undefined || isTakenOver ? 'goes' : 'stays'
  }
}

function valuesOf(target: readonly ApiObject[]): (at: Pick<Difference, 'resource' | 'steps'>) => unknown {
  const objects = new Map(target.map((object) => [resourceText(object), comparable(object)]))
  return ({ resource, steps }) => valueIn(objects.get(resource), steps)
}
