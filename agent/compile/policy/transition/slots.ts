// SPDX-License-Identifier: Apache-2.0
/** The rulesets of an endpoint or host endpoint as one list, slot by slot. Layer: agent/compile (pure). */
import { recordOf } from '#lib/base/object.ts'
import type { EndSets, HostSets, HostSlot, SetId } from '../tables.ts'

export const HOST_SLOTS = [
  'untrackedIngress',
  'untrackedEgress',
  'earlyIngress',
  'forwardIngress',
  'forwardEgress',
  'normalIngress',
  'normalEgress',
] as const satisfies readonly HostSlot[]

export function endSlots({ ingress, egress, stagedIngress, stagedEgress }: EndSets): readonly SetId[] {
  return [ingress, egress, stagedIngress, stagedEgress]
}

export function hostSlots({ sets, staged }: HostSets): readonly SetId[] {
  return HOST_SLOTS.flatMap((slot) => [sets[slot], staged[slot]])
}

/** The same with others in their place. */
export function replaceEndSets<V extends EndSets>(value: V, other: (set: SetId) => SetId): V {
  const { ingress, egress, stagedIngress, stagedEgress } = value
  return {
    ...value,
    ...{ ingress: other(ingress), egress: other(egress) },
    ...{ stagedIngress: other(stagedIngress), stagedEgress: other(stagedEgress) },
  }
}

export function replaceHostSets<V extends HostSets>(value: V, other: (set: SetId) => SetId): V {
  const replaced = (sets: HostSets['sets']): HostSets['sets'] => recordOf(HOST_SLOTS, (slot) => other(sets[slot]))
  return { ...value, sets: replaced(value.sets), staged: replaced(value.staged) }
}
