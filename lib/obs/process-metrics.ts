// SPDX-License-Identifier: Apache-2.0
/** What every program of ours shows of its own process, by the names that Prometheus' clients use. Layer: lib/obs. */
import type { Metrics, Sample } from './metrics.ts'

export interface ProcessMetricsOptions {
  /** "agent" */
  readonly program: string
  readonly isShown: () => boolean
}

export function processMetrics(metrics: Metrics, { program, isShown }: ProcessMetricsOptions): void {
  const own = (value: () => number) => (): Sample[] => (isShown() ? [{ labels: {}, value: value() }] : [])
  metrics.counter(
    { name: 'process_cpu_seconds_total', help: `CPU time that the ${program} has used, in seconds.`, labels: [] },
    own(() => {
      const { user, system } = process.cpuUsage()
      return (user + system) / 1e6
    }),
  )
  metrics.gauge(
    { name: 'process_resident_memory_bytes', help: `Resident memory of the ${program}, in bytes.`, labels: [] },
    own(() => process.memoryUsage.rss()),
  )
  metrics.gauge(
    { name: 'process_start_time_seconds', help: `Time at which the ${program} started, in seconds since 1970.`, labels: [] },
    own(() => performance.timeOrigin / 1000),
  )
}
