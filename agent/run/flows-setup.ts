// SPDX-License-Identifier: Apache-2.0
/** Flows of this node, and the socket on which they are read. Layer: agent. */
import { BpfMap, monotonicNs } from '#native'
import type { Task } from '#lib/base/async/task-group.ts'
import { aborted, taskOf } from '#lib/base/async/task-group.ts'
import { everyMs, systemClock } from '#lib/base/clock.ts'
import type { Log } from '#lib/obs/log.ts'
import { setNodeState } from '../dataplane/maps/node-state.ts'
import type { Dataplane } from '../dataplane/dataplane.ts'
import type { GenerationTables } from '../dataplane/generation-tables.ts'
import { EVENTS } from '../dataplane/programs/objects.ts'
import { Flows, type FlowPrograms } from '../flows/flows.ts'
import { FlowSender } from '../flows/sender.ts'
import { FlowServer } from '../flows/server.ts'
import { namedCounters } from '../maps/counters.ts'
import type { ClusterSide } from './cluster-side.ts'
import type { AgentOptions } from './options.ts'
import { flowSocket, savedFlows } from './state-files.ts'

export interface FlowsSetupOptions {
  readonly options: Pick<AgentOptions, 'node' | 'stateDir' | 'flowTarget'>
  readonly cluster: Pick<ClusterSide, 'desired' | 'health'>
  readonly dataplane: Dataplane
  readonly log: Log
}

export interface FlowsSetup {
  readonly flows: Flows
  readonly tasks: readonly Task[]
}

export function setUpFlows({ options, cluster, dataplane, log }: FlowsSetupOptions): FlowsSetup {
  const flows = new Flows({
    ...{ node: options.node, clock: systemClock, log },
    monotonicMs: () => monotonicNs() / 1e6,
    programs: programsOf(dataplane),
    savedFile: savedFlows(options.stateDir),
    ruleNames: () => cluster.desired.policy.ruleNames,
  })
  const server = new FlowServer({ path: flowSocket(options.stateDir), flows, log })
  const { flowTarget: target } = options
  const senders = target === undefined ? [] : [new FlowSender({ target, flows, clock: systemClock, log, health: cluster.health })]
  return { flows, tasks: [taskOf(flows), (stop) => serve(server, log, stop), ...senders.map(taskOf)] }
}

const AGAIN_MS = 10_000

/** Where it cannot listen the agent goes on, and it is tried again. */
async function serve(server: FlowServer, log: Log, stop: AbortSignal): Promise<void> {
  await using open = server
  await everyMs(systemClock, {
    ms: 0,
    signal: stop,
    run: async () => {
      await open.start().then(
        () => aborted(stop),
        async (error: unknown) => {
          log.warn({ error }, 'flows.not-served')
          await systemClock.sleep(AGAIN_MS, stop).catch(() => undefined)
        },
      )
    },
  })
}

/** The same object for as long as the same programs and table are at work. */
function programsOf(dataplane: Dataplane): () => FlowPrograms | undefined {
  let last: { readonly loaded: GenerationTables; readonly map: FlowPrograms['map']; readonly programs: FlowPrograms } | undefined
  return () => {
    const [loaded, table] = [dataplane.loaded, dataplane.current.flows]
    const state = loaded?.shared.maps.get('np_state')
    if (loaded === undefined || table === undefined || state === undefined) return undefined
    if (last?.loaded === loaded && last.map === table.map) return last.programs
    const { generation, btf, counters } = loaded
    const reasons = new Map(namedCounters(counters).flatMap(({ kind, name, slot }) => (kind === 'drop' ? [[slot, name] as const] : [])))
    const programs: FlowPrograms = {
      ...{ id: generation.id, btf, map: table.map, reader: table.reader },
      maps: [...generation.pinned].flatMap(([name, map]) => (name.endsWith(`-${EVENTS}`) && map instanceof BpfMap ? [map] : [])),
      reasonName: (number) => reasons.get(number) ?? String(number),
      setAccounts: (on) => {
        setNodeState(state, btf, { accounts: Number(on) })
      },
    }
    last = { loaded, map: table.map, programs }
    return programs
  }
}
