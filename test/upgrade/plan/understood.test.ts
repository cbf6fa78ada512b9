// SPDX-License-Identifier: Apache-2.0
/** Objects of a newer version, on the way back. Layer: test. */
import { expect, test } from 'vitest'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { notUnderstood, type NotUnderstood } from '#upgrade/plan/understood.ts'
import { OBJECTS } from '../../apiserver/upgrade/ours/own-cluster.ts'

function told(...objects: readonly ApiObject[]): NotUnderstood {
  return notUnderstood({ serverVersion: 'v1.34.0', objects }, '3.31.6')
}

/** That object, with more in its spec. */
function having(kind: string, more: object): ApiObject {
  const found = OBJECTS.find((object) => object.kind === kind)
  return asApiObject({ ...found, spec: { ...(found?.['spec'] as object), ...more } })
}

test('what both versions take is not told', () => {
  expect(told(...OBJECTS)).toEqual({ refusals: [], warnings: [] })
})

test.each([
  ['a policy', having('GlobalNetworkPolicy', { later: 1 }), 'GlobalNetworkPolicy security.web', 'spec.later'],
  ['a block', having('IPAMBlock', { later: 1 }), 'IPAMBlock 10-28-0-0-26', 'spec.later'],
  ['a pool', having('IPPool', { vxlanMode: 'Sometimes' }), 'IPPool pods', 'spec.vxlanMode'],
  ['a kind', asApiObject({ apiVersion: 'netplane.io/v3', kind: 'Later', metadata: { name: 'a' } }), 'Later a', 'kind'],
])('%s that this version does not take is refused by name, field and reason', (...[, object, resource, field]) => {
  expect(told(object)).toEqual({
    refusals: [
      expect.objectContaining({
        ...{ resource, field, remedy: 'Change it so that both versions understand it, or stay at v3.31.6' },
        reason: expect.stringMatching(/^this version does not take it: /) as unknown,
      }),
    ],
    warnings: [],
  })
})

test('a setting that it does not know is told, as the others count', () => {
  expect(told(having('FelixConfiguration', { later: true }))).toMatchObject({
    refusals: [],
    warnings: [{ resource: 'FelixConfiguration default', field: 'spec.later' }],
  })
})

test('what is not ours, and what older versions have stored, is not read', () => {
  const stored = asApiObject({ apiVersion: 'crd.netplane.io/v1', kind: 'IPPool', metadata: { name: 'a' }, spec: { later: 1 } })
  expect(told(stored, asApiObject({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a', namespace: 'b' }, spec: 1 }))).toEqual({
    refusals: [],
    warnings: [],
  })
})
