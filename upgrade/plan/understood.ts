// SPDX-License-Identifier: Apache-2.0
/** Objects of a newer version that this one does not understand: it would obey nothing of them. Layer: upgrade
 * (pure). */
import type { ApiObject } from '#lib/api/resource.ts'
import type { Rejected } from '#lib/base/result.ts'
import { parseIPBlock } from '#lib/kube/objects/ip-block.ts'
import { FieldError, inside } from '#lib/kube/parse/fields.ts'
import { identify, parseObject } from '#lib/kube/parse/parse-object.ts'
import { GROUP } from '#lib/kube/resources.ts'
import { controllersConfigurationSpec } from '#lib/kube/schema/controllers-configuration.ts'
import { layerFrom } from '#agent/config/layers.ts'
import { resolveConfig } from '#agent/config/resolve.ts'
import type { UpgradeFacts } from '../found/facts.ts'
import { groupOf, resourceText } from '../found/objects.ts'
import type { Refusal } from '../refusal.ts'

export interface NotUnderstood {
  /** of none of its fields anything is obeyed */
  readonly refusals: readonly Refusal[]
  /** a setting alone is not */
  readonly warnings: readonly Refusal[]
}

/** Of none of ours: the operator's is read where its edits are. */
export function notUnderstood({ objects }: UpgradeFacts, newer: string): NotUnderstood {
  const ours = objects.filter((object) => groupOf(object) === GROUP)
  const remedy = `Change it so that both versions understand it, or stay at v${newer}`
  const told = (object: ApiObject, { path, reason }: Pick<Rejected, 'path' | 'reason'>): Refusal => ({
    ...{ resource: resourceText(object), field: path, value: undefined, remedy },
    reason: `this version does not take it: ${reason}`,
  })
  return {
    refusals: ours.flatMap((object) => faultsOf(object).map((fault) => told(object, fault))),
    warnings: ours.flatMap((object) => settingsOf(object).map((fault) => told(object, fault))),
  }
}

function faultsOf(object: ApiObject): readonly Pick<Rejected, 'path' | 'reason'>[] {
  if (object.kind === 'IPAMBlock') return thrownBy(() => parseIPBlock(object))
  if (object.kind === 'ControllersConfiguration') return thrownBy(() => inside(object, 'spec', controllersConfigurationSpec.read))
  const identified = identify(object)
  if (identified.kind === 'rejected') return [identified.rejected]
  if (identified.kind === 'foreign') return []
  const parsed = parseObject(object, identified.ref)
  return parsed.kind === 'rejected' ? parsed.rejected : []
}

function settingsOf(object: ApiObject): readonly Rejected[] {
  if (object.kind !== 'FelixConfiguration') return []
  const identified = identify(object)
  const parsed = identified.kind === 'ours' ? parseObject(object, identified.ref) : undefined
  if (parsed?.kind !== 'ok' || parsed.value.kind !== 'FelixConfiguration') return []
  return resolveConfig([layerFrom(parsed.value)], undefined).rejected
}

function thrownBy(read: () => unknown): readonly Pick<Rejected, 'path' | 'reason'>[] {
  try {
    read()
    return []
  } catch (thrown) {
    if (!(thrown instanceof FieldError)) throw thrown
    return [thrown]
  }
}
