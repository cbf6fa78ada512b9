// SPDX-License-Identifier: Apache-2.0
/** Flows and hints as clients of the REST API read them. Layer: flows. */
import { WINDOW_SECONDS, type FlowWindow, type PolicyHit, type PolicyRef } from '#lib/flows/flow.ts'
import { NAME_ALIASES, NAMESPACE_ALIASES, type Aliases } from '../filter/filter.ts'
import type { Hint } from '../query/hints.ts'
import type { Paged } from '../query/list.ts'

/** `last`: start of the last of its windows. */
export function flowShape({ key, counts, start, source, dest }: FlowWindow, last = start) {
  const { service } = key
  return {
    start_time: timeText(start),
    end_time: timeText(last + WINDOW_SECONDS),
    action: key.action,
    source_name: called(key.source.name, NAME_ALIASES),
    source_namespace: key.source.namespace,
    source_labels: source.labels.join(' | '),
    dest_name: called(key.dest.name, NAME_ALIASES),
    dest_namespace: key.dest.namespace,
    dest_labels: dest.labels.join(' | '),
    protocol: key.protocol,
    dest_port: key.destPort,
    reporter: key.reporter,
    policies: { enforced: hitShapes(key.enforced), pending: hitShapes(key.pending) },
    packets_in: counts.packetsIn,
    packets_out: counts.packetsOut,
    bytes_in: counts.bytesIn,
    bytes_out: counts.bytesOut,
    // what clients of today do not ask for
    service:
      service === undefined ? null : { namespace: service.namespace, name: service.name, port: service.port, port_name: service.portName },
    source_ips: source.addresses,
    dest_ips: dest.addresses,
    drop_reason: key.reason,
  }
}

function hitShapes(hits: readonly PolicyHit[]) {
  if (hits.length === 0) return null
  return hits.map((hit, index) => ({
    ...refShape(hit),
    action: hit.action,
    policy_index: index,
    rule_index: hit.rule,
    trigger:
      hit.trigger === undefined
        ? null
        : { ...refShape(hit.trigger), action: 'ActionUnspecified', policy_index: 0, rule_index: 0, trigger: null },
  }))
}

function refShape({ kind, name, namespace, tier }: PolicyRef) {
  return { kind, name, namespace, tier }
}

export function hintShape(value: string, hint: Hint): { readonly value: string } {
  if (hint === 'DestName' || hint === 'SourceName') return { value: called(value, NAME_ALIASES) }
  if (hint === 'DestNamespace' || hint === 'SourceNamespace') return { value: called(value, NAMESPACE_ALIASES) }
  return { value }
}

export function totalShape({ totalPages, totalResults }: Paged<unknown>) {
  return { totalPages, totalResults }
}

function called(value: string, aliases: Aliases): string {
  return aliases.find(([one]) => one === value)?.[1] ?? value
}

/** "2026-11-27T10:00:00Z" */
function timeText(seconds: number): string {
  return new Date(seconds * 1000).toISOString().replace('.000Z', 'Z')
}
