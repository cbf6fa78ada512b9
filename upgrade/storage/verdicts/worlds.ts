// SPDX-License-Identifier: Apache-2.0
/** What judges packets, as it was stored and as it is here: two worlds of the same pods. Layer: upgrade (pure). */
import { rejectedText } from '#lib/base/result.ts'
import { identify, parseObject } from '#lib/kube/parse/parse-object.ts'
import type { KubeObject, Snapshot } from '#lib/model/snapshot.ts'
import { Store } from '#lib/store/store.ts'
import { applyRules } from '../../stored/edit.ts'
import { specOf } from '../../stored/kinds.ts'
import { readStoredObject, type StoredObject } from '../../stored/metadata.ts'
import { isTiered, nameOf, tierNames, tierOf } from '../../stored/names.ts'
import { API_VERSION, type V3Object } from '../../stored/outcome.ts'
import { FOREIGN_NAMES } from '../../stored/read-object.ts'
import { canonical } from '../../stored/rules/canonical.ts'
import { typesRule } from '../../stored/rules/policy.ts'
import { oldPoolFields, poolDefaults } from '../../stored/rules/pool.ts'
import { oldSelectors } from '../../stored/rules/selectors.ts'

export interface World {
  readonly snapshot: Snapshot
  /** objects that no reader takes, a sentence each */
  readonly unreadable: readonly string[]
}

/** In a form that our readers take. What they mean is what old agents made of them: names, tiers and directions
 * where none were written, words in any case; nothing is left out. */
export function storedObjects(objects: readonly unknown[]): readonly V3Object[] {
  const stored = objects.map(readStoredObject).flatMap((one) => (one.kind === 'read' ? [one.stored] : []))
  const tiers = tierNames(stored)
  return stored.filter((one) => !isMadeOfAnother(one)).map((one) => objectOf(one, tiers))
}

/** The cluster has the policy itself. */
function isMadeOfAnother({ ref }: StoredObject): boolean {
  return isTiered(ref.kind) && FOREIGN_NAMES.some(({ prefix, how }) => how === 'left' && ref.name.startsWith(prefix))
}

function objectOf(stored: StoredObject, tiers: ReadonlySet<string>): V3Object {
  const { ref, labels } = stored
  const metadata = { name: nameOf(stored, tiers), ...(ref.namespace === '' ? {} : { namespace: ref.namespace }), labels }
  const object: V3Object = { apiVersion: API_VERSION, kind: ref.kind, metadata, spec: stored.spec ?? {} }
  const rules = [
    canonical(specOf(ref.kind)),
    ...(ref.kind === 'IPPool' ? [oldPoolFields, poolDefaults] : []),
    ...(isTiered(ref.kind) ? [typesRule, oldSelectors, () => [{ path: ['spec', 'tier'], after: tierOf(stored, tiers), why: '' }]] : []),
  ]
  return applyRules(object, rules).object
}

/** Of what agents read of the cluster. One that cannot be read closes what it selects, as in agents. */
export function worldOf(objects: readonly unknown[]): World {
  const unreadable: string[] = []
  const read = objects.flatMap((object): readonly KubeObject[] => {
    const identified = identify(object)
    if (identified.kind !== 'ours') return []
    const parsed = parseObject(object, identified.ref)
    if (parsed.kind === 'ok') return [parsed.value]
    unreadable.push(parsed.rejected.map(rejectedText).join('; '))
    return parsed.instead === undefined ? [] : [parsed.instead]
  })
  const store = new Store({ sources: ['cluster'] })
  store.sink('cluster').apply(read.map((object) => ({ kind: 'upsert', object })))
  return { snapshot: store.snapshot, unreadable }
}
