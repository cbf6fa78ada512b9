// SPDX-License-Identifier: Apache-2.0
/** The operator's metrics. Layer: operator. */
import { findCondition } from '#lib/kube/objects/conditions.ts'
import { CONDITION_TYPES } from '#lib/kube/operator-resources.ts'
import type { ApiObject } from '#lib/api/resource.ts'
import { Metrics } from '#lib/obs/metrics.ts'
import { processMetrics } from '#lib/obs/process-metrics.ts'

export interface OperatorMetricsInput {
  readonly version: string
  /** whether this process is the one that acts */
  readonly isLeader: () => boolean
  readonly statuses: () => Iterable<ApiObject>
  /** "DaemonSet" → how many were written since the start */
  readonly writes: () => ReadonlyMap<string, number>
  /** hands over what is to be called with the seconds each pass took */
  readonly onPass: (observe: (seconds: number) => void) => void
}

const PASS_SECONDS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30]

export function operatorMetrics({ version, isLeader, statuses, writes, onPass }: OperatorMetricsInput): Metrics {
  const metrics = new Metrics()
  metrics.gauge({ name: 'netplane_operator_info', help: 'Always 1; the label names the version.', labels: ['version'] }, () => [
    { labels: { version }, value: 1 },
  ])
  processMetrics(metrics, { program: 'operator', isShown: () => true })
  metrics.gauge({ name: 'netplane_operator_leader', help: '1 while this process is the one that acts.', labels: [] }, () => [
    { labels: {}, value: Number(isLeader()) },
  ])
  metrics.gauge(
    { name: 'netplane_operator_condition', help: '1 where a condition of a component holds.', labels: ['component', 'type'] },
    function* () {
      for (const status of statuses())
        for (const type of CONDITION_TYPES)
          yield {
            labels: { component: status.metadata.name, type },
            value: Number(findCondition(status, type)?.status === 'True'),
          }
    },
  )
  metrics.counter(
    { name: 'netplane_operator_writes_total', help: 'Objects that were made, changed or deleted, by kind.', labels: ['kind'] },
    function* () {
      for (const [kind, value] of writes()) yield { labels: { kind }, value }
    },
  )
  onPass(
    metrics.histogram(
      { name: 'netplane_operator_pass_seconds', help: 'How long it took to compare what is with what is asked for, and to write it.' },
      PASS_SECONDS,
    ),
  )
  return metrics
}
