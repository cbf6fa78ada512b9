// SPDX-License-Identifier: Apache-2.0
/** A taint that nodes are registered with: pods wait until the node's agent has taken it away. Layer: lib/kube. */

/** Whatever effect it has; nobody of ours sets it. */
export const STARTUP_TAINT = 'netplane.io/agent-not-ready'
