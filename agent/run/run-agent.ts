// SPDX-License-Identifier: Apache-2.0
/** The running agent, from top to bottom. Layer: agent. */
import { release } from 'node:os'
import { RULES_PER_BLOCK } from '#lib/base/bpf-constants.ts'
import { packageVersion } from '#lib/base/os/package.ts'
import type { RootLog } from '#lib/obs/log.ts'
import { FLOOR_BLOCKS, MOST_BLOCKS } from '../compile/policy/rules/rule-list.ts'
import { isFloor } from '../dataplane/programs/objects.ts'
import { openClusterSide, type ClusterSide } from './cluster-side.ts'
import { ownKernel, type NodeKernel } from './node-kernel.ts'
import { openNodeSide } from './node-side.ts'
import type { AgentOptions } from './options.ts'
import { serveMetrics } from './serve-metrics.ts'
import { runTaskGroup } from '#lib/base/async/task-group.ts'
import { tellStatus } from './tell-status.ts'

export interface RunOptions {
  readonly options: AgentOptions
  readonly log: RootLog
  /** ends the agent; the data plane goes on */
  readonly signal: AbortSignal
  readonly kernel?: NodeKernel
}

/** Resolves once the signal has aborted and everything is let go of. Rejects for a defect, or a machine on which
 * nothing can work. */
export async function runAgent(run: RunOptions): Promise<void> {
  const { options, log, signal, kernel = ownKernel(options) } = run
  await using stack = new AsyncDisposableStack()
  log.info({ version: packageVersion(), kernel: release(), pid: process.pid }, 'agent.started')
  const features = kernel.features(log)
  log.info({ ...features }, 'kernel.features')
  const blocks = isFloor(features) ? FLOOR_BLOCKS : MOST_BLOCKS
  const cluster = stack.use(await openClusterSide({ options, log, blocks }))
  const unsupported = await kernel.whyUnsupported(features)
  if (unsupported !== undefined) return await refuse(unsupported, cluster, run)
  cluster.health.pass('kernel')
  if (blocks < MOST_BLOCKS) log.warn({ rules: blocks * RULES_PER_BLOCK, staged: 'not evaluated' }, 'policy.limited')
  const node = stack.use(openNodeSide({ options, log, cluster, kernel, features, blocks }))
  await runTaskGroup(signal, node.tasks)
  log.info({}, 'agent.stopped')
}

/** Stays up to be asked, and touches nothing. */
async function refuse(why: string, cluster: ClusterSide, { options, log, signal }: RunOptions): Promise<void> {
  await using stack = new AsyncDisposableStack()
  // the source, which would let go of it, never runs
  stack.use(cluster.source.client)
  cluster.health.fail('kernel', `${why}: the node's networking is left as it was found`)
  log.error({ kernel: release(), why }, 'kernel.unsupported')
  serveMetrics({ cluster, node: options.node, running: undefined, flows: undefined, onPass: () => undefined, onSync: () => undefined })
  await tellStatus({ options, cluster, log, running: undefined, openPod: undefined, cuts: () => undefined, firewalls: () => [] })(signal)
}
