// SPDX-License-Identifier: Apache-2.0
/** What is still to be written of what was stored. Layer: test. */
import { describe, expect, test } from 'vitest'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { inStages, planImport, type ImportPlan } from '#upgrade/storage/import-plan.ts'
import { readInstallation, type InstallationInput } from '#upgrade/stored/installation.ts'
import { common, fixture, fixtureNames } from '../stored/installation.ts'
import { raw, uidOf } from '../stored/stored.ts'
import { afterWrites } from './held.ts'

const PLAIN = common('3.30', 'netplane')
const SHOP = namespace('shop')

function namespace(name: string, deletionTimestamp?: string): ApiObject {
  return asApiObject({ apiVersion: 'v1', kind: 'Namespace', metadata: { name, ...(deletionTimestamp && { deletionTimestamp }) } })
}

function planOf(input: InstallationInput, held: readonly ApiObject[], namespaces: readonly ApiObject[] = [SHOP]): ImportPlan {
  return planImport({ read: readInstallation(input), held, namespaces: new Map(namespaces.map((one) => [one.metadata.name, one])) })
}

/** As often as there is something to write. */
function written(input: InstallationInput): { readonly held: readonly ApiObject[]; readonly rounds: readonly (readonly string[])[] } {
  let held: readonly ApiObject[] = []
  const rounds: (readonly string[])[] = []
  for (let plan = planOf(input, held); plan.writes.length > 0 && rounds.length < 5; plan = planOf(input, held)) {
    rounds.push(plan.writes.map(({ text }) => text))
    held = afterWrites(
      held,
      plan.writes.map(({ object }) => object),
    )
  }
  return { held, rounds }
}

const withObjects = (...objects: readonly unknown[]): InstallationInput => ({ ...PLAIN, objects: [...PLAIN.objects, ...objects] })
const changed = (held: readonly ApiObject[], kind: string, change: (object: ApiObject) => object): readonly ApiObject[] =>
  held.map((object) => (object.kind === kind ? asApiObject(change(object)) : object))

test('the cluster information comes first, and is locked whatever was stored', () => {
  const [first] = planOf(PLAIN, []).writes
  expect(first?.text).toBe('ClusterInformation default')
  expect(first?.object['spec']).toMatchObject({ clusterGUID: '3f1c', datastoreReady: false })
})

test('kinds are written one after the other', () => {
  const stages = inStages(planOf(PLAIN, []).writes).map((stage) => [...new Set(stage.map(({ object }) => object.kind))].join())
  expect(stages).toEqual([
    ...['ClusterInformation', 'Tier', 'ControllersConfiguration', 'FelixConfiguration'],
    ...['IPPool', 'GlobalNetworkPolicy', 'NetworkPolicy', 'IPAMBlock'],
  ])
})

test.each(fixtureNames())('%s: nothing is left to write once all is written, and refused objects are in the way', (name) => {
  const input = fixture(name)
  const { held, rounds } = written(input)
  const plan = planOf(input, held)
  expect(rounds.length).toBeLessThan(3)
  expect(plan.writes).toEqual([])
  expect(plan.counts.every(({ wanted, same }) => wanted === same && wanted > 0)).toBe(true)
  const { outcomes, findings } = readInstallation(input)
  expect(plan.problems.length > 0).toBe([...outcomes, ...findings].some(({ kind }) => kind === 'refused'))
})

test('owners are named by the UIDs that they have here, once they are there', () => {
  const input = fixture('3.30-netplane')
  const { held, rounds } = written(input)
  expect(rounds.at(-1)).toEqual(['NetworkSet shop/partners'])
  expect(held.find(({ kind }) => kind === 'NetworkSet')?.metadata['ownerReferences']).toEqual([
    {
      ...{ apiVersion: 'netplane.io/v3', kind: 'GlobalNetworkSet', name: 'office' },
      ...{ uid: uidOf('made', 'GlobalNetworkSet//office'), blockOwnerDeletion: true },
    },
  ])
})

describe('an object that is not as it was stored is written again', () => {
  const { held } = written(PLAIN)
  const spec = (object: ApiObject) => ({ ...object, spec: { ...(object['spec'] as object), natOutgoing: false } })
  const labels = (object: ApiObject) => ({ ...object, metadata: { ...object.metadata, labels: { a: 'b' } } })
  const owners = (object: ApiObject) => ({ ...object, metadata: { ...object.metadata, ownerReferences: [{ uid: '1' }] } })
  const ready = (object: ApiObject) => ({ ...object, spec: { ...(object['spec'] as object), datastoreReady: true } })

  test.each([
    ['IPPool', spec, 'IPPool default-ipv4-ippool'],
    ['NetworkPolicy', labels, 'NetworkPolicy shop/web'],
    ['NetworkPolicy', owners, 'NetworkPolicy shop/web'],
    ['ClusterInformation', ready, 'ClusterInformation default'],
  ])('%s', (kind, change, text) => {
    const { writes, counts } = planOf(PLAIN, changed(held, kind, change))
    expect(writes.map((write) => write.text)).toEqual([text])
    expect(writes[0]?.before?.metadata.resourceVersion).toBe('1')
    expect(counts.find((count) => count.kind === kind)).toEqual({ kind, wanted: 1, same: 0 })
  })

  test('but an annotation more is none of it', () => {
    const annotated = changed(held, 'NetworkPolicy', (object) => ({ ...object, metadata: { ...object.metadata, annotations: { a: 'b' } } }))
    expect(planOf(PLAIN, annotated).writes).toEqual([])
  })
})

test('an object that nothing stored has become is in the way', () => {
  const other = asApiObject({ apiVersion: 'netplane.io/v3', kind: 'GlobalNetworkPolicy', metadata: { name: 'other' }, spec: {} })
  expect(planOf(PLAIN, [...written(PLAIN).held, other]).problems).toEqual([
    'GlobalNetworkPolicy other is there already, and no stored object is it: delete it, or store it as well',
  ])
})

test('a refused object is in the way, with its reason', () => {
  expect(planOf(withObjects(raw('BGPPeer', 'rack')), []).problems).toEqual([
    "BGPPeer rack: BGP is not supported: nodes reach each other's pods by VXLAN, or as the network routes",
  ])
})

test('an object is left where its namespace is gone, and is in the way where that is going', () => {
  expect(planOf(PLAIN, [], []).left).toEqual(['NetworkPolicy shop/web: its namespace is gone'])
  expect(planOf(PLAIN, [], []).writes.map(({ text }) => text)).not.toContain('NetworkPolicy shop/web')
  expect(planOf(PLAIN, [], [namespace('shop', '2026-01-01T00:00:00Z')]).problems).toEqual([
    'NetworkPolicy shop/web: namespace shop is being deleted: wait until it is gone',
  ])
})
