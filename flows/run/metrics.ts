// SPDX-License-Identifier: Apache-2.0
/** What the aggregator shows of itself. Layer: flows. */
import { Metrics, type Sample } from '#lib/obs/metrics.ts'
import { processMetrics } from '#lib/obs/process-metrics.ts'
import type { Counts, NodeState } from '../aggregator.ts'
import type { Kept } from '../store/retention.ts'

export interface Shown {
  readonly count: Counts
  readonly nodes: () => ReadonlyMap<string, NodeState>
  readonly collectors: () => number
  readonly followers: () => number
  readonly keys: () => number
  readonly openRows: () => number
  /** undefined: not known yet */
  readonly kept: () => Kept | undefined
  /** rows that went because the file was too large */
  readonly forgotten: () => number
}

export function flowsMetrics(shown: Shown): Metrics {
  const metrics = new Metrics()
  const one = (value: () => number | undefined) => (): Sample[] => {
    const now = value()
    return now === undefined ? [] : [{ labels: {}, value: now }]
  }
  const { count, kept } = shown
  const counter = (name: string, help: string, value: () => number): void => metrics.counter({ name, help, labels: [] }, one(value))
  const gauge = (name: string, help: string, value: () => number | undefined): void => metrics.gauge({ name, help, labels: [] }, one(value))
  metrics.counter(
    { name: 'netplane_flows_updates_total', help: 'Updates that have come, by what became of them.', labels: ['result'] },
    () => Object.entries(count.updates).map(([result, value]) => ({ labels: { result }, value })),
  )
  counter('netplane_flows_unknown_hits_total', 'Policy hits of a kind that this version does not know.', () => count.unknownHits)
  counter('netplane_flows_omitted_total', 'Flows that followers were not told: they were too many, or read too late.', () => count.omitted)
  counter('netplane_flows_cut_off_total', 'Followers that were cut off, because they did not read.', () => count.cutOff)
  counter('netplane_flows_forgotten_total', 'Rows that went before their time, because the file was too large.', shown.forgotten)
  metrics.gauge(
    { name: 'netplane_flows_node_lost_records', help: 'Records that a node has lost since the start of its agent.', labels: ['node'] },
    () => [...shown.nodes()].map(([node, { lost }]) => ({ labels: { node }, value: lost })),
  )
  gauge('netplane_flows_collectors', 'Connections by which updates come.', shown.collectors)
  gauge('netplane_flows_followers', 'Streams that are open.', shown.followers)
  gauge('netplane_flows_keys', 'Keys of which anything is kept.', shown.keys)
  gauge('netplane_flows_open_rows', 'Rows of windows that may still change.', shown.openRows)
  gauge('netplane_flows_rows', 'Rows of windows in the file.', () => kept()?.rows)
  gauge('netplane_flows_file_bytes', 'Used bytes of the file.', () => kept()?.bytes)
  gauge('netplane_flows_oldest_seconds', 'Start of the oldest window that is kept, in seconds since 1970.', () => kept()?.oldest)
  processMetrics(metrics, { program: 'aggregator', isShown: () => true })
  return metrics
}
