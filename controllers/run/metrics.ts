// SPDX-License-Identifier: Apache-2.0
/** The controllers' metrics. Layer: controllers. */
import { Metrics } from '#lib/obs/metrics.ts'
import { processMetrics } from '#lib/obs/process-metrics.ts'

export interface ControllersMetricsInput {
  readonly version: string
  /** whether this process is the one that acts */
  readonly isLeader: () => boolean
  readonly hostEndpointWrites: () => number
  readonly blocksCollected: () => number
  /** hands over what is to be called with the seconds each pass took */
  readonly onPass: (observe: (seconds: number) => void) => void
}

const PASS_SECONDS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30]

export function controllersMetrics({ version, isLeader, hostEndpointWrites, blocksCollected, onPass }: ControllersMetricsInput): Metrics {
  const metrics = new Metrics()
  const one = (value: () => number) => () => [{ labels: {}, value: value() }]
  metrics.gauge({ name: 'netplane_controllers_info', help: 'Always 1; the label names the version.', labels: ['version'] }, () => [
    { labels: { version }, value: 1 },
  ])
  processMetrics(metrics, { program: 'controllers', isShown: () => true })
  metrics.gauge(
    { name: 'netplane_controllers_leader', help: '1 while this process is the one that acts.', labels: [] },
    one(() => Number(isLeader())),
  )
  metrics.counter(
    {
      ...{ name: 'netplane_controllers_host_endpoint_writes_total', labels: [] },
      help: 'Automatic host endpoints that were made, changed or deleted.',
    },
    one(hostEndpointWrites),
  )
  metrics.counter(
    { name: 'netplane_controllers_blocks_collected_total', help: 'Blocks of addresses taken back from nodes that are gone.', labels: [] },
    one(blocksCollected),
  )
  onPass(
    metrics.histogram(
      { name: 'netplane_controllers_pass_seconds', help: 'How long it took to compare what is with what is asked for, and to write it.' },
      PASS_SECONDS,
    ),
  )
  return metrics
}
