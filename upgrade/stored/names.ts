// SPDX-License-Identifier: Apache-2.0
/** What clients call a stored object: names of policies have their tier in front. Layer: upgrade (pure). */
import { isObject } from '#lib/base/object.ts'
import { BUILT_IN_TIERS } from '#lib/model/policy.ts'
import type { StoredObject } from './metadata.ts'

export const TIER_LABEL = 'netplane.io/tier'
const DEFAULT = 'default'
const PREFIX = `${DEFAULT}.`
/** Kinds whose stored names have the tier in front. */
const TIERED: ReadonlySet<string> = new Set(['NetworkPolicy', 'GlobalNetworkPolicy', 'StagedNetworkPolicy', 'StagedGlobalNetworkPolicy'])

export function isTiered(kind: string): boolean {
  return TIERED.has(kind)
}

/** Names of the tiers that are stored, and of those that are always there. */
export function tierNames(all: readonly StoredObject[]): ReadonlySet<string> {
  const stored = all.filter(({ ref }) => ref.kind === 'Tier').map(({ ref }) => ref.name)
  return new Set([...BUILT_IN_TIERS.map(({ name }) => name), ...stored])
}

/** Its tier, else the tier that its name begins with, else the default one. */
export function tierOf({ ref, spec }: StoredObject, tiers: ReadonlySet<string>): string {
  const said = isObject(spec) && Object.hasOwn(spec, 'tier') ? spec['tier'] : undefined
  if (typeof said === 'string' && said !== '') return said
  const prefix = ref.name.slice(0, Math.max(0, ref.name.indexOf('.')))
  return tiers.has(prefix) ? prefix : DEFAULT
}

/** As it says itself, else as it is stored; without the prefix of the default tier. */
export function nameOf(stored: StoredObject, tiers: ReadonlySet<string>): string {
  const { ref, shownName } = stored
  if (!isTiered(ref.kind)) return ref.name
  if (shownName !== undefined) return shownName
  const isPrefixed = ref.name.startsWith(PREFIX) && ref.name !== PREFIX && tierOf(stored, tiers) === DEFAULT
  return isPrefixed ? ref.name.slice(PREFIX.length) : ref.name
}
