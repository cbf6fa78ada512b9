// SPDX-License-Identifier: Apache-2.0
/** What the controllers make of the ClusterInformation. Layer: test. */
import { expect, test } from 'vitest'
import { clusterInformation } from '#controllers/status/cluster-information.ts'

const facts = (dataplane?: { readonly nodes: number; readonly ready: number; readonly updated: number }, agents?: string) => ({
  ...{ version: '3.31.5', agents, dataplane, newGuid: () => 'guid' },
  clusterType: () => Promise.resolve('k8s,eks'),
})
const ALL = { nodes: 2, ready: 2, updated: 2 }

test('one that is not there is made, the datastore open', async () => {
  expect(await clusterInformation({}, facts())).toEqual({
    ...{ clusterGUID: 'guid', clusterType: 'k8s,eks', netplaneVersion: 'v3.31.5', datastoreReady: true },
  })
})

test('what it says stays: a lock, a type, a version that not all nodes have left', async () => {
  const found = { clusterGUID: 'g', clusterType: 'k8s,other', netplaneVersion: 'v3.31.1', datastoreReady: false }
  for (const dataplane of [undefined, { ...ALL, updated: 1 }, { ...ALL, ready: 1 }, { nodes: 0, ready: 0, updated: 0 }])
    expect(await clusterInformation(found, facts(dataplane))).toEqual({ ...found, ...(dataplane && { dataplane }) })
  expect(await clusterInformation(found, facts(ALL, 'v3.31.6'))).toEqual({ ...found, dataplane: ALL })
  expect(await clusterInformation(found, facts(ALL, 'v3.31.5'))).toMatchObject({ netplaneVersion: 'v3.31.5' })
  expect(await clusterInformation(found, facts(ALL))).toEqual({ ...found, netplaneVersion: 'v3.31.5', dataplane: ALL })
})
