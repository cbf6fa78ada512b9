// SPDX-License-Identifier: Apache-2.0
/** Nodes whose kubelets have said nothing for so long that their controller says so. Layer: operator (pure). */
import type { ApiObject } from '#lib/api/resource.ts'
import { findCondition } from '#lib/kube/objects/conditions.ts'

/** So long such a node is waited for all the same. */
export const SILENT_MS = 60_000

export function silentNodes(nodes: readonly ApiObject[]): ReadonlySet<string> {
  return new Set(nodes.filter((node) => findCondition(node, 'Ready')?.status === 'Unknown').map(({ metadata }) => metadata.name))
}
