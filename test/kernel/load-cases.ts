// SPDX-License-Identifier: Apache-2.0
/** Every object under every combination of knobs we ship that the running kernel can have. Layer: test. */
import type { NodeCfg } from '#agent/maps/shapes.ts'
import { ANY_V6 } from '#lib/base/ip.ts'
import type { ObjectName } from '../support/objects.ts'
import { loadObject } from '../support/objects.ts'
import type { KernelFacts } from './kernel-facts.ts'
import { testCfg } from './packet-runner.ts'

export interface LoadCase {
  readonly name: string
  readonly object: ObjectName
  readonly cfg: NodeCfg
}

type Switch = 'redirect_peer' | 'redirect_neigh' | 'coarse_clock' | 'connect_tcp' | 'connect_udp'

/** The knobs that switch code on and off; others are only numbers to the verifier. */
const SWITCHES: { readonly [O in ObjectName]: readonly Switch[] } = {
  workload: ['redirect_peer', 'redirect_neigh', 'coarse_clock'],
  host: ['redirect_peer', 'redirect_neigh', 'coarse_clock'],
  connect: ['coarse_clock', 'connect_tcp', 'connect_udp'],
}

export function loadCases(facts: KernelFacts): LoadCase[] {
  const base = testCfg(facts.features)
  const objects: readonly ObjectName[] = ['workload', 'host', 'connect']
  return objects.flatMap((object) => {
    // A switch that is off in `base` needs something the kernel lacks.
    const possible = SWITCHES[object].filter((name) => base[name] === 1)
    const cases = subsets(possible).map((off) => loadCase(object, base, off))
    return [...cases, { name: `${object} for a node without addresses`, object, cfg: { ...base, node_v4: ANY_V6, node_v6: ANY_V6 } }]
  })
}

/** undefined when the kernel takes it, else what it says. */
export async function runLoadCase(given: LoadCase, facts: KernelFacts): Promise<string | undefined> {
  const without = given.object === 'connect' ? facts.missingHooks : []
  try {
    const { object } = await loadObject(given.object, { cfg: given.cfg, stubHelpers: facts.missingHelpers, without })
    object.close()
    return undefined
  } catch (error) {
    return refusal(error)
  }
}

function loadCase(object: ObjectName, base: NodeCfg, off: readonly Switch[]): LoadCase {
  const changes = Object.fromEntries(off.map((name) => [name, 0]))
  return { name: `${object} ${off.length === 0 ? 'with everything' : `without ${off.join(', ')}`}`, object, cfg: { ...base, ...changes } }
}

function subsets<T>(items: readonly T[]): T[][] {
  return items.reduce<T[][]>((sets, item) => [...sets, ...sets.map((set) => [...set, item])], [[]])
}

/** The end of the verifier's log says where it stopped. */
function refusal(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const log = 'verifierLog' in error && typeof error.verifierLog === 'string' ? error.verifierLog : ''
  return [error.message, ...log.trim().split('\n').slice(-25)].join('\n    ')
}
