// SPDX-License-Identifier: Apache-2.0
/** Shape of the ClusterInformation's spec. Layer: lib/kube. */
import { field, fieldOr, object, required } from './shape.ts'
import { flag, integer, text } from './primitives.ts'

const dataplane = object({
  nodes: required('Nodes that should have an agent.', integer(0, 2_147_483_647)),
  ready: required('Those of them whose data plane is in place.', integer(0, 2_147_483_647)),
  updated: required('Those of them whose agent is of the newest version.', integer(0, 2_147_483_647)),
})

export const clusterInformationSpec = object({
  clusterGUID: field('Made once, unique to the cluster.', text),
  clusterType: field('What is known of where it runs.', text),
  netplaneVersion: field('The version that all nodes have, or move to.', text),
  datastoreReady: fieldOr(
    true,
    'False: the datastore is locked. Agents and netplanectl write no object of netplane.io, and new pods wait. Made true, then left as an administrator puts it.',
    flag,
  ),
  dataplane: field('On how many nodes the data plane is in place.', dataplane),
})
