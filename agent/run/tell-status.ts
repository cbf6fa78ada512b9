// SPDX-License-Identifier: Apache-2.0
/** The task that tells the API server of this node, where there is one. Layer: agent. */
import { existsSync } from 'node:fs'
import { systemClock } from '#lib/base/clock.ts'
import { packageVersion } from '#lib/base/os/package.ts'
import type { Log } from '#lib/obs/log.ts'
import type { StatusOptions } from '../report/status.ts'
import type { ClusterSide } from './cluster-side.ts'
import { agentRole, type AgentOptions } from './options.ts'
import { cniReadyFile } from './state-files.ts'
import { aborted, runTaskGroup, taskOf, type Task } from '#lib/base/async/task-group.ts'

export interface TellStatusOptions extends Pick<StatusOptions, 'cuts' | 'running' | 'firewalls' | 'openPod'> {
  readonly options: AgentOptions
  readonly cluster: ClusterSide
  readonly log: Log
}

export function tellStatus({ options, cluster, log, ...node }: TellStatusOptions): Task {
  const { health, reports, source, datastore, store } = cluster
  if (datastore === undefined) return aborted
  const wasReady = options.cni !== undefined && existsSync(cniReadyFile(options.cni.socket))
  return async (stop) => {
    const { statusOf } = await import('#agent/report/status.ts')
    const { outboxes, mode } = statusOf({
      ...{ ...datastore, node: options.node, daemonSet: options.daemonSet, version: packageVersion(), clock: systemClock },
      ...{ store, book: reports.sources, policies: reports.policies, health, log, wasReady, byService: source.byService, ...node },
      config: () => reports.settings.config,
      duties: agentRole(options),
    })
    await runTaskGroup(stop, [...outboxes, ...(mode === undefined ? [] : [mode])].map(taskOf))
  }
}
