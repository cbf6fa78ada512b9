// SPDX-License-Identifier: Apache-2.0
/** Where it stands which nodes without machines a cluster is to have. Layer: testkit (pure). */

/** A ConfigMap: each key is a node. Its value is empty, {@link NOT_READY}, or a text of a NetplaneStatus that the node
 * waits for before it joins. */
export const TEST_NODES = { namespace: 'kube-system', name: 'test-nodes' } as const

/** The node's kubelet says so, until the value is empty again. */
export const NOT_READY = 'not ready'
