// SPDX-License-Identifier: Apache-2.0
/** Facts → how the product is installed, and what speaks against an upgrade. Layer: upgrade (pure). */
import type { Refusal } from '../refusal.ts'
import type { UpgradeFacts } from './facts.ts'
import type { Found } from './found.ts'
import { REFUSALS, WARNINGS } from './refusals.ts'
import { traitsOf, type Traits } from './traits.ts'
import { datastoreOf, oldVariantOf, targetOf } from './variant.ts'

export interface FindResult {
  /** undefined: it cannot be told, and a refusal says why */
  readonly found: Found | undefined
  /** all that keeps an upgrade from being begun */
  readonly refusals: readonly Refusal[]
  /** what an administrator has to know, and keeps nothing from being done */
  readonly warnings: readonly Refusal[]
}

export function findInstallation(facts: UpgradeFacts): FindResult {
  const traits = traitsOf(facts)
  return {
    found: foundOf(traits),
    refusals: REFUSALS.flatMap(({ find }) => find(traits)),
    warnings: WARNINGS.flatMap(({ find }) => find(traits)),
  }
}

function foundOf({ facts, main, method, version, isBpf, release }: Traits): Found | undefined {
  if (main === undefined || version === undefined) return undefined
  const variant = method === 'manifest' ? oldVariantOf(main, facts) : 'netplane'
  return {
    method,
    variant: main.isOurs ? undefined : variant,
    target: targetOf(main, method, facts),
    datastore: datastoreOf(main),
    version,
    namespace: main.namespace,
    daemonSet: main.daemonSet,
    isBpf,
    environment: main.environment.words,
    release: release && `${release.namespace}/${release.name}`,
  }
}
