// SPDX-License-Identifier: Apache-2.0
/** Which object of today an owner reference of an older installation means. Layer: test. */
import { expect, test } from 'vitest'
import { ownerNames } from '#upgrade/storage/owner-names.ts'
import { otherUid } from '#upgrade/stored/uid.ts'
import { raw, storedBy, uidOf } from '../stored/stored.ts'

const STORED = '51fdcd2c-eb0b-40c8-834c-8986d0bdd420'
const SHOWN = '8abfb334-d7d0-4013-8332-91610bbd2b04'
const objects = [
  storedBy('3.20')('NetworkPolicy', 'shop/web'),
  storedBy('3.30')('GlobalNetworkPolicy', 'default.dns', { metadata: { name: 'default.dns' } }),
  storedBy('3.30')('GlobalNetworkPolicy', 'ntp', { spec: { tier: 'default' } }),
  raw('GlobalNetworkSet', 'offices', { metadata: { uid: STORED } }),
]
const nameOf = ownerNames(objects)

type Reference = readonly [apiVersion: string, kind: string, name: string, uid: string]

function named([apiVersion, kind, name, uid]: Reference): string {
  const { name: today, namespace } = nameOf({ apiVersion, kind, name, uid }, 'shop')
  return namespace === '' ? today : `${namespace ?? ''}/${today}`
}

const V3 = 'netplane.io/v3'
const V1 = 'crd.netplane.io/v1'

const CASES: readonly (readonly [reference: Reference, today: string])[] = [
  // by the UID, of either rule, whatever the reference calls it
  [[V3, 'GlobalNetworkSet', 'before', STORED], 'offices'],
  [[V3, 'GlobalNetworkSet', 'before', SHOWN], 'offices'],
  [[V1, 'GlobalNetworkSet', 'before', STORED], 'offices'],
  [[V3, 'NetworkPolicy', 'default.web', otherUid(uidOf('NetworkPolicy', 'shop/default.web')) ?? ''], 'shop/web'],
  // by the name
  [[V3, 'NetworkPolicy', 'web', '0'], 'shop/web'],
  [[V3, 'NetworkPolicy', 'default.web', '0'], 'shop/web'],
  [[V1, 'NetworkPolicy', 'default.web', '0'], 'shop/web'],
  [[V3, 'GlobalNetworkPolicy', 'default.dns', '0'], 'default.dns'],
  [[V1, 'GlobalNetworkPolicy', 'default.default.dns', '0'], 'default.dns'],
  [[V1, 'GlobalNetworkPolicy', 'default.ntp', '0'], 'ntp'],
  // of what is not stored, as it is called
  [[V3, 'NetworkPolicy', 'default.other', '0'], 'shop/default.other'],
  [[V3, 'GlobalNetworkSet', 'others', '0'], 'others'],
]

test.each(CASES)('%j is %s', (reference, today) => {
  expect(named(reference)).toBe(today)
})

test('an owner is of this version', () => {
  expect(nameOf({ apiVersion: V1, kind: 'GlobalNetworkSet', name: 'offices', uid: STORED }, 'shop').apiVersion).toBe(V3)
})
