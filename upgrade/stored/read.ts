// SPDX-License-Identifier: Apache-2.0
/** All that an installation before this version has stored → all that is to be made here. Layer: upgrade (pure). */
import { by, compareNumbers, compareText } from '#lib/base/order.ts'
import { STAGES, type RuleInput } from './kinds.ts'
import { readStoredObject, type StoredObject } from './metadata.ts'
import { tierNames } from './names.ts'
import { API_VERSION, storedText, type Outcome, type V3Object } from './outcome.ts'
import { ownersByUid } from './owners.ts'
import { kindOf, readObject, type StoredContext } from './read-object.ts'
import { OLD_DEFAULTS } from './rules/felix.ts'

export interface StoredInput {
  /** of the group of stored objects, as the API server gives them */
  readonly objects: readonly unknown[]
  /** of the agents before this version: it went before every object */
  readonly environment: RuleInput['environment']
}

export interface ReadAll {
  /** in the order in which the objects are to be made */
  readonly outcomes: readonly Outcome[]
  /** of addresses: read with the pods that have them */
  readonly addresses: readonly StoredObject[]
}

export function readStored({ objects, environment }: StoredInput): ReadAll {
  const read = objects.map(readStoredObject)
  const stored = read.flatMap((one) => (one.kind === 'read' ? [one.stored] : []))
  const unread = read.filter((one) => one.kind === 'refused')
  const tiers = tierNames(stored)
  const context: StoredContext = { tiers, owners: ownersByUid(stored, tiers), environment }
  const own = stored.flatMap((one) => readObject(one, context))
  const outcomes = withoutConflicts([...unread, ...own, ...made(stored, context)])
  return { outcomes: inOrder(outcomes), addresses: stored.filter(({ ref }) => kindOf(ref.kind)?.reading.how === 'addresses') }
}

/** What older versions had without storing it. */
function made(stored: readonly StoredObject[], context: StoredContext): readonly Outcome[] {
  const isThere = (kind: string): boolean => stored.some(({ ref }) => ref.kind === kind && ref.name === 'default')
  const tier = { order: 1_000_000, defaultAction: 'Deny' }
  return [
    ...(isThere('Tier') ? [] : [madeObject('Tier', tier, 'every installation has this tier')]),
    ...(isThere('FelixConfiguration') ? [] : [madeFelix(context)]),
  ]
}

function madeObject(kind: string, spec: Readonly<Record<string, unknown>>, why: string): Outcome {
  const object: V3Object = { apiVersion: API_VERSION, kind, metadata: { name: 'default' }, spec }
  return { kind: 'changed', of: undefined, object, owners: [], differences: [{ field: 'spec', before: undefined, after: spec, why }] }
}

function madeFelix(context: StoredContext): Outcome {
  const empty: StoredObject = {
    ref: { kind: 'FelixConfiguration', namespace: '', name: 'default', uid: '' },
    ...{ shownName: undefined, labels: {}, annotations: {}, kept: {}, ownerReferences: [], spec: {} },
  }
  const [outcome] = readObject(empty, context)
  return outcome?.kind === 'changed'
    ? { ...outcome, of: undefined }
    : (outcome ?? madeObject('FelixConfiguration', OLD_DEFAULTS, 'the defaults of older versions'))
}

/** Of two that come to the same name neither is carried. */
export function withoutConflicts(outcomes: readonly Outcome[]): readonly Outcome[] {
  const byName = Map.groupBy(outcomes, keyOf)
  return outcomes.map((outcome) => {
    const others = (byName.get(keyOf(outcome)) ?? []).filter((other) => other !== outcome)
    const { of } = outcome
    if (!('object' in outcome) || of === undefined || others.length === 0) return outcome
    const names = others.map((other) => (other.of === undefined ? 'one that is made' : storedText(other.of))).join(', ')
    const { name } = outcome.object.metadata
    return { kind: 'refused', of, faults: [{ field: 'metadata.name', value: name, reason: `${names} has the same name here` }] }
  })
}

/** One for all of one name, and another for what has none. */
function keyOf(outcome: Outcome): unknown {
  if (!('object' in outcome)) return outcome
  const { kind, metadata } = outcome.object
  return `${kind}/${metadata.namespace ?? ''}/${metadata.name}`
}

export function inOrder(outcomes: readonly Outcome[]): readonly Outcome[] {
  const stageOf = (outcome: Outcome): number => {
    const stage = kindOf(kindNameOf(outcome))?.stage
    return stage === undefined ? STAGES.length : STAGES.indexOf(stage)
  }
  return outcomes.toSorted((a, b) => compareNumbers(stageOf(a), stageOf(b)) || by(textOf, compareText)(a, b))
}

function kindNameOf(outcome: Outcome): string {
  return 'object' in outcome ? outcome.object.kind : outcome.of.kind
}

function textOf(outcome: Outcome): string {
  const { namespace = '', name } = 'object' in outcome ? outcome.object.metadata : outcome.of
  return `${kindNameOf(outcome)}/${namespace}/${name}`
}
