// SPDX-License-Identifier: Apache-2.0
/** The client beside the nodes, as pods see it. Layer: test. */
import type { Cluster } from '../../../testkit/lab/cluster.ts'
import type { Family } from '../../../testkit/lab/manifests.ts'

export function clientAddress(cluster: Cluster, family: Family): string {
  const found = cluster.lab.topology.client.addresses.find((address) => address.includes(':') === (family === 6))
  if (found === undefined) throw new Error(`the client has no IPv${family} address`)
  return found.split('/')[0] ?? found
}
