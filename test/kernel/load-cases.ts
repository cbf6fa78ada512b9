// SPDX-License-Identifier: Apache-2.0
/** Objects under the knobs that the running kernel can have: all on, each off, all off. All combinations, which cost too much
 * in an emulated machine, are verifier.test.ts's. Layer: test. */
import type { NodeCfg } from '#agent/maps/shapes.ts'
import { ANY_V6 } from '#lib/base/ip.ts'
import { BpfMap, BpfObject } from '#native'
import type { ObjectName } from '../support/objects.ts'
import { loadObject, objectPath } from '../support/objects.ts'
import type { KernelFacts } from './kernel-facts.ts'
import { HELPERS, testCfg } from './packet-runner.ts'

export interface LoadCase {
  readonly name: string
  readonly object: ObjectName
  readonly cfg: NodeCfg
}

/** enum bpf_map_type, and a flag of bpf_map_create */
const ARRAY = 2
const RDONLY_PROG = 128

type Switch = 'redirect_peer' | 'redirect_neigh' | 'coarse_clock' | 'jiffies' | 'connect_tcp' | 'connect_udp'

/** The knobs that switch code on and off; others are only numbers to the verifier. */
const SWITCHES: { readonly [O in ObjectName]: readonly Switch[] } = {
  workload: ['redirect_peer', 'redirect_neigh', 'coarse_clock', 'jiffies'],
  host: ['redirect_peer', 'redirect_neigh', 'coarse_clock', 'jiffies'],
  connect: ['connect_tcp', 'connect_udp'],
}

export const OBJECTS: readonly ObjectName[] = ['workload', 'host', 'connect']

/** Each object once, with all the kernel can do. */
export function plainLoadCases(facts: KernelFacts): LoadCase[] {
  const base = testCfg(facts.features)
  return OBJECTS.map((object) => loadCase(object, base, []))
}

export function loadCases(facts: KernelFacts): LoadCase[] {
  const base = testCfg(facts.features)
  return OBJECTS.flatMap((object) => {
    // A switch that is off in `base` needs something the kernel lacks.
    const possible = SWITCHES[object].filter((name) => base[name] === 1)
    const cases = [[], ...possible.map((name) => [name]), possible].map((off) => loadCase(object, base, off))
    return [...cases, { name: `${object} for a node without addresses`, object, cfg: { ...base, node_v4: ANY_V6, node_v6: ANY_V6 } }]
  })
}

/** As kernels before 5.5 see an object: its knobs are not known when it is loaded, so no branch is pruned, and calls of
 * newer helpers are replaced. undefined when the kernel takes it. */
export async function loadUnfolded(name: ObjectName, facts: KernelFacts): Promise<string | undefined> {
  const file = BpfObject.open(objectPath(name))
  const section = file.maps().find((map) => map.name.endsWith('.rodata'))
  file.close()
  if (section === undefined) return 'it has no read-only data'
  // libbpf fills and freezes only what it made itself, and only frozen data counts as known.
  const { keySize, valueSize, maxEntries } = section
  const knobs = BpfMap.create({ name: 'np_unfolded', type: ARRAY, keySize, valueSize, maxEntries, flags: RDONLY_PROG })
  try {
    const share = new Map([[section.name, knobs]])
    const { object } = await loadObject(name, { share, stubHelpers: Object.values(HELPERS), without: withoutHooks(name, facts) })
    object.close()
    return undefined
  } catch (error) {
    return refusal(error)
  } finally {
    knobs.close()
  }
}

function withoutHooks(name: ObjectName, facts: KernelFacts): string[] {
  return name === 'connect' ? [...facts.missingHooks] : []
}

/** undefined when the kernel takes it, else what it says. */
export async function runLoadCase(given: LoadCase, facts: KernelFacts): Promise<string | undefined> {
  try {
    const { object } = await loadObject(given.object, {
      cfg: given.cfg,
      stubHelpers: facts.missingHelpers,
      without: withoutHooks(given.object, facts),
    })
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

/** The end of the verifier's log says where it stopped. */
function refusal(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const log = 'verifierLog' in error && typeof error.verifierLog === 'string' ? error.verifierLog : ''
  const end = log.trim().split('\n').slice(-25)
  return (log === '' ? [error.message] : [error.message, ...end]).join('\n    ')
}
