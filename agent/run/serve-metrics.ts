// SPDX-License-Identifier: Apache-2.0
/** Which of the agent's parts its metrics are read from. Layer: agent. */
import { packageVersion } from '#lib/base/os/package.ts'
import type { MetricsInput } from '../report/metrics.ts'
import type { ClusterSide } from './cluster-side.ts'

export interface ServeMetricsOptions extends Pick<MetricsInput, 'node' | 'running' | 'flows' | 'onPass' | 'onSync'> {
  readonly cluster: ClusterSide
}

/** The library is loaded with the first request. */
export function serveMetrics({ cluster, ...node }: ServeMetricsOptions): void {
  const { http, reports, source, store, desired } = cluster
  const { sources: book, policies, settings } = reports
  http.serveMetrics(async () => {
    const { agentMetrics } = await import('#agent/report/metrics.ts')
    return agentMetrics({
      ...{ version: packageVersion(), store, book, settings, policies, ...node },
      sourceFacts: () => source.facts?.(),
      showsProcess: () => settings.config?.showsProcess !== false,
      policySize: () => (node.running === undefined ? undefined : desired.policy.size),
    })
  })
}
