// SPDX-License-Identifier: Apache-2.0
/** What is wanted of a node, compiled from nothing. Layer: agent. */
import { atOnce } from '#lib/base/async/slices.ts'
import { readOnce } from '#lib/store/read-once.ts'
import type { SourceStatus } from '#lib/store/source.ts'
import { Store } from '#lib/store/store.ts'
import type { DesiredChange } from '../compile/desired.ts'
import { agentRole, type AgentOptions } from '../run/options.ts'
import { localSettings } from '../run/local-settings.ts'
import { openSource, type ServerPlace } from '../run/sources.ts'
import { DesiredState } from '../run/desired-state.ts'

export interface DesiredRead {
  /** undefined: `missing` says why */
  readonly desired: DesiredChange | undefined
  /** what the source refuses */
  readonly problems: SourceStatus['problems']
  readonly missing: string | undefined
  /** of policy, by number */
  readonly ruleNames: ReadonlyMap<number, string>
}

/** Reads the source once. */
export async function readDesired(
  options: Pick<AgentOptions, 'node' | 'origin' | 'cni' | 'foreignNetwork'> & Partial<Pick<AgentOptions, 'config'>>,
): Promise<DesiredRead> {
  const source = await openSource(options.origin, { node: options.node })
  const { events, problems, unavailable } = await readOnce(source)
  const store = new Store({ sources: [source.name] })
  const sink = store.sink(source.name)
  sink.apply(events)
  if (unavailable === undefined) sink.synced()
  const own = localSettings(options.config, process.env)
  const servers = (): readonly ServerPlace[] => source.servers?.() ?? []
  const state = new DesiredState({ node: options.node, store, own, servers, ...agentRole(options) })
  const { compiled, missingNode } = atOnce(state.compile()) ?? {}
  const why = unavailable ?? missingNode ?? `the source (${source.name}) could not be read`
  return { desired: compiled?.desired, problems, missing: compiled === undefined ? why : undefined, ruleNames: state.policy.ruleNames }
}
