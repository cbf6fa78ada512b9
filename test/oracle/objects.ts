// SPDX-License-Identifier: Apache-2.0
/** Everything that policy depends on, out of a snapshot. Layer: test. */
import type { KubeObject, Snapshot } from '#lib/model/snapshot.ts'

export function* objectsIn(snapshot: Snapshot): Iterable<KubeObject> {
  const { namespaces, serviceAccounts, nodes, pods, policies, tiers, networkSets, profiles, hostEndpoints } = snapshot
  for (const map of [namespaces, serviceAccounts, nodes, pods, policies, tiers, networkSets, profiles, hostEndpoints]) yield* map.values()
  const services = new Set(
    [...policies.values()].flatMap(({ ingress, egress }) => [...(ingress ?? []), ...(egress ?? [])]).flatMap(servicesOf),
  )
  for (const service of services) yield* snapshot.allSlicesOf(service)
}

function servicesOf({ source, destination }: { readonly source: Side; readonly destination: Side }): readonly string[] {
  return [source, destination].flatMap(({ services }) => (services ?? []).map(({ namespace, name }) => `${namespace}/${name}`))
}

interface Side {
  readonly services: readonly { readonly namespace: string; readonly name: string }[] | undefined
}
