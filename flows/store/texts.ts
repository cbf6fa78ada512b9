// SPDX-License-Identifier: Apache-2.0
/** Keys and details as texts that are equal when they are, and as rows of tables. Layer: flows. */
import { listValue } from '@duckdb/node-api'
import { sha256Text } from '#lib/base/hash.ts'
import type { EndDetails, FlowKey, PolicyHit } from '#lib/flows/flow.ts'
import type { Value } from './database.ts'

/** 132 bits: equal for equal keys, and for those alone. */
export function keyHash(key: FlowKey): string {
  const { source, dest, service } = key
  const ends = [source.type, source.name, source.namespace, dest.type, dest.name, dest.namespace, key.destPort]
  const meant = service === undefined ? [] : [service.namespace, service.name, service.portName, service.port]
  const rest = [key.protocol, key.reporter, key.action, key.reason]
  return hashOf([ends, meant, rest, key.enforced.map(hitText), key.pending.map(hitText)])
}

function hitText({ kind, tier, namespace, name, action, rule, trigger }: PolicyHit): readonly unknown[] {
  return [kind, tier, namespace, name, action, rule, trigger && [trigger.kind, trigger.tier, trigger.namespace, trigger.name]]
}

export function detailsHash({ labels, addresses, pods, node, owner }: EndDetails): string {
  return hashOf([labels, addresses, pods, node, owner])
}

export function hashOf(value: unknown): string {
  return sha256Text(JSON.stringify(value)).slice(0, 22)
}

export function keyCells(id: number, hash: string, key: FlowKey): readonly Value[] {
  const { source, dest, service } = key
  const ends = [source.type, source.name, source.namespace, dest.type, dest.name, dest.namespace, key.destPort]
  const meant = [service?.namespace, service?.name, service?.portName, service?.port].map((part) => part ?? null)
  return [id, hash, ...ends, ...meant, key.protocol, key.reporter, key.action, key.reason]
}

export function hitCells(id: number, key: FlowKey): readonly (readonly Value[])[] {
  const cells = (isPending: boolean) => (hit: PolicyHit, position: number) => {
    const { kind, tier, namespace, name, action, rule, trigger } = hit
    const asked = [trigger?.kind, trigger?.tier, trigger?.namespace, trigger?.name].map((part) => part ?? null)
    return [id, isPending, position, kind, tier, namespace, name, action, rule, ...asked]
  }
  return [...key.enforced.map(cells(false)), ...key.pending.map(cells(true))]
}

export function detailsCells(id: number, { labels, addresses, pods, node, owner }: EndDetails): readonly Value[] {
  return [id, listValue([...labels]), listValue([...addresses]), listValue([...pods]), node, owner]
}
