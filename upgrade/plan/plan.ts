// SPDX-License-Identifier: Apache-2.0
/** Facts → all that an upgrade would come to, and all that speaks against it, at once. Layer: upgrade (pure). */
import { asApiObject } from '#lib/api/resource.ts'
import { GROUP } from '#lib/kube/resources.ts'
import { NO_EDITS } from '../edits/collect.ts'
import type { Edits } from '../edits/edit.ts'
import type { UpgradeFacts } from '../found/facts.ts'
import { findInstallation } from '../found/find.ts'
import type { Found } from '../found/found.ts'
import { STORED_GROUP, groupOf, objectsOf } from '../found/objects.ts'
import type { Refusal } from '../refusal.ts'
import type { AddressFinding } from '../stored/ipam/findings.ts'
import { readInstallation, type InstallationInput, type ReadInstallation } from '../stored/installation.ts'
import { verdictReportOf } from '../storage/verdicts/report.ts'
import { storedText, type Outcome } from '../stored/outcome.ts'
import { editsIn, newerOf } from './edits.ts'
import { notUnderstood } from './understood.ts'

export interface PlanInput {
  readonly facts: UpgradeFacts
  /** of this program: "3.31.5" */
  readonly version: string
  /** ms since 1970 */
  readonly now: number
}

export interface UpgradePlan {
  readonly version: string
  /** undefined: it cannot be told, and a refusal says why */
  readonly found: Found | undefined
  /** undefined: nothing is stored in the way of older versions */
  readonly stored: ReadInstallation | undefined
  readonly edits: Edits
  /** of all parts: nothing is begun as long as there is one */
  readonly refusals: readonly Refusal[]
  readonly warnings: readonly Refusal[]
}

export function planUpgrade({ facts, version, now }: PlanInput): UpgradePlan {
  const { found, refusals, warnings } = findInstallation(facts)
  if (found === undefined) return { version, found, stored: undefined, edits: NO_EDITS, refusals, warnings }
  const stored = readsStored(found) ? readInstallation(storedInput(facts, found, now)) : undefined
  const edits = editsIn(facts, found, version)
  const refused = stored === undefined ? [] : [...stored.outcomes.flatMap(refusalsOf), ...stored.findings.flatMap(addressRefusal)]
  const differing = stored === undefined || refused.length > 0 ? [] : differencesIn(facts, storedInput(facts, found, now), stored)
  const newer = found.variant === undefined ? newerOf(found, version) : undefined
  const unknown = newer === undefined ? { refusals: [], warnings: [] } : notUnderstood(facts, newer)
  return {
    ...{ version, found, stored, edits, warnings: [...warnings, ...unknown.warnings] },
    refusals: [...refusals, ...refused, ...differing, ...edits.refusals, ...unknown.refusals],
  }
}

/** Once objects of this version are there, the step of the verdicts compares those. */
function differencesIn({ objects }: UpgradeFacts, input: InstallationInput, { outcomes }: ReadInstallation): readonly Refusal[] {
  if (objects.some((object) => groupOf(object) === GROUP)) return []
  const held = outcomes.flatMap((outcome) => ('object' in outcome ? [asApiObject(outcome.object)] : []))
  const cluster = objects.filter((object) => groupOf(object) !== STORED_GROUP)
  return verdictReportOf(input, { held, cluster }).differences.map((reason) => ({
    ...{ resource: 'what is stored', field: '', value: undefined, reason },
    remedy: 'Change what decides it, by the netplanectl of the installed version, so that both versions say the same',
  }))
}

function readsStored({ variant, datastore }: Found): boolean {
  return variant !== undefined && datastore === 'kubernetes'
}

function storedInput(facts: UpgradeFacts, { environment }: Found, now: number): InstallationInput {
  return {
    objects: facts.objects.filter((object) => groupOf(object) === STORED_GROUP),
    pods: objectsOf(facts, '', 'Pod'),
    nodes: objectsOf(facts, '', 'Node'),
    environment,
    now,
  }
}

function refusalsOf(outcome: Outcome): readonly Refusal[] {
  if (outcome.kind !== 'refused') return []
  const resource = storedText(outcome.of)
  return outcome.faults.map((fault) => ({ resource, ...fault, remedy: 'Change it by the netplanectl of the installed version.' }))
}

function addressRefusal({ kind, address, holder, reason }: AddressFinding): readonly Refusal[] {
  if (kind !== 'refused') return []
  const resource = `address ${address} ${holder === '' ? '' : `of ${holder}`}`.trim()
  return [{ resource, field: '', value: undefined, reason, remedy: 'Delete the pod, or the object that has the address wrongly' }]
}
