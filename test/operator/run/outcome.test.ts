// SPDX-License-Identifier: Apache-2.0
/** Whose agents are there. Layer: test. */
import { expect, test } from 'vitest'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { MANAGED_BY } from '#lib/control/declared-managers.ts'
import { FIELD_MANAGER } from '#operator/objects/owned-fields.ts'
import { isInstalled, otherAgents } from '#operator/run/outcome.ts'
import type { ClusterView } from '#operator/run/cluster-view.ts'

const options = { namespace: 'netplane-operator', node: undefined, systemNamespace: 'netplane-system' }
const OURS = { labels: { [MANAGED_BY]: FIELD_MANAGER } }

function daemonSet(place: string, metadata: object = {}): readonly [string, ApiObject] {
  const [namespace, name] = place.split('/')
  return [place, asApiObject({ apiVersion: 'apps/v1', kind: 'DaemonSet', metadata: { namespace, name, ...metadata } })]
}

/** A cluster with these. */
function having(...sets: readonly (readonly [string, ApiObject])[]) {
  return { view: { daemonSets: { objects: new Map(sets) } } as unknown as ClusterView, options }
}

function installation(status: object): ApiObject {
  return asApiObject({ apiVersion: 'operator.netplane.io/v1', kind: 'Installation', metadata: { name: 'default' }, status })
}

test.each([
  ['kube-system/netplane-node', true],
  ['netplane-system/netplane-agent', true],
  ['netplane-system/netplane-node', true],
  ['shop/netplane-node', false],
  ['shop/netplane-agent', false],
])('a DaemonSet %s that is not ours is another installation: %j', (place, isOther) => {
  expect(otherAgents(having(daemonSet(place)))?.reason).toBe(isOther ? 'OtherInstallation' : undefined)
})

test('our own DaemonSet is no other, and means that agents are installed; a foreign one of our name does not', () => {
  const place = 'netplane-system/netplane-node'
  expect(otherAgents(having(daemonSet(place, OURS)))).toBeUndefined()
  expect(isInstalled(installation({}), having(daemonSet(place, OURS)))).toBe(true)
  expect(isInstalled(installation({}), having(daemonSet(place)))).toBe(false)
})

test('an Installation that says so is installed, also where its DaemonSet is gone', () => {
  expect(isInstalled(installation({ installed: true }), having())).toBe(true)
  expect(isInstalled(installation({}), having())).toBe(false)
})
