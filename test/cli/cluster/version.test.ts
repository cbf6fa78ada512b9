// SPDX-License-Identifier: Apache-2.0
/** What `version` prints, and how it counts. Layer: test. */
import { expect, test } from 'vitest'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { countVersions } from '#lib/control/cluster-version.ts'
import { versionText } from '../../../cli/cluster/version.ts'

function agent(name: string, image: string, state?: object): ApiObject {
  const status = state === undefined ? {} : { containerStatuses: [{ name: 'netplane-node', state }] }
  return asApiObject({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: { containers: [{ name: 'netplane-node', image }] },
    status,
  })
}

const KNOWN = { client: 'v3.31.5', cluster: 'v3.31.5', type: 'k8s', datastoreReady: true }

test('an agent that does not run is counted apart', () => {
  const pods = [
    agent('a', 'netplane:v3.31.5', { running: {} }),
    agent('b', 'netplane:3.31.5'),
    agent('c', 'netplane:3.31.6', { waiting: { reason: 'ImagePullBackOff' } }),
  ]
  expect(countVersions(pods)).toEqual([
    { version: 'v3.31.5', nodes: 2 },
    { version: 'v3.31.6 (not running)', nodes: 1 },
  ])
})

test('all nodes of the cluster are counted, and those without an agent have a line', () => {
  const nodes = [{ version: 'v3.31.5', nodes: 4 }]
  const lines = (nodeCount: number | null): readonly string[] =>
    versionText({ ...KNOWN, nodes, nodeCount })
      .trimEnd()
      .split('\n')
      .slice(3)
  expect(lines(6)).toEqual(['Nodes run:        v3.31.5 on 4 of 6 nodes', '                  no agent on 2 of 6 nodes'])
  expect(lines(4)).toEqual(['Nodes run:        v3.31.5 on 4 of 4 nodes'])
  expect(lines(3)).toEqual(lines(4))
  expect(lines(null)).toEqual(['Nodes run:        v3.31.5 on 4 nodes'])
})

test('a cluster without agents has one line of them', () => {
  expect(versionText({ ...KNOWN, nodes: [], nodeCount: 3 })).toContain('Nodes run:        no agent has a pod\n')
})
