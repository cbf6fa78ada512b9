// SPDX-License-Identifier: Apache-2.0
/** Objects under the knobs at their ends, and under unknown ones, which makes the verifier walk every combination at
 * once. One by one all combinations are verifier.test.ts's: an emulated machine takes seconds for each.
 * Layer: test. */
import type { NodeCfg } from '#agent/maps/shapes.ts'
import { deepEqual } from '#lib/base/deep-equal.ts'
import { BpfMap, BpfObject } from '#native'
import type { LoadOptions, ObjectName } from '../../../testkit/packets/objects.ts'
import { loadObject, objectPath } from '../../../testkit/packets/objects.ts'
import { isTooMuch, parseWork } from '../../support/verifier.ts'
import type { VerifierWork } from '../../support/verifier.ts'
import type { KernelFacts } from '../kernel-facts.ts'
import { HELPERS, testCfg } from '../../../testkit/packets/runner.ts'

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
  tc: ['redirect_peer', 'redirect_neigh', 'coarse_clock', 'jiffies'],
  xdp: ['jiffies'],
  connect: ['connect_tcp', 'connect_udp'],
}

export const OBJECTS: readonly ObjectName[] = ['tc', 'connect', 'xdp']

export function loadCases(facts: KernelFacts): LoadCase[] {
  const base = testCfg(facts.features)
  return OBJECTS.flatMap((object) => {
    const none = Object.fromEntries(SWITCHES[object].map((name) => [name, 0]))
    const able = { name: `${object} with all this kernel can do`, object, cfg: base }
    // on old kernels they are off already
    return deepEqual({ ...base, ...none }, base)
      ? [able]
      : [able, { name: `${object} with all switches off`, object, cfg: { ...base, ...none } }]
  })
}

/** As kernels before 5.5 see the object they are given: its knobs are not known when it is loaded, so no branch is
 * pruned, and calls of newer helpers are replaced. undefined when the kernel takes it. */
export async function loadUnfolded(name: ObjectName, facts: KernelFacts): Promise<string | undefined> {
  const file = BpfObject.open(objectPath(name, { global_functions: 'no' }))
  const section = file.maps().find((map) => map.name.endsWith('.rodata'))
  file.close()
  if (section === undefined) return 'it has no read-only data'
  // libbpf fills and freezes only what it made itself, and only frozen data counts as known.
  const { keySize, valueSize, maxEntries } = section
  const knobs = BpfMap.create({ name: 'np_unfolded', type: ARRAY, keySize, valueSize, maxEntries, flags: RDONLY_PROG })
  try {
    const share = new Map([[section.name, knobs]])
    const { object } = await loadObject(name, {
      floor: true,
      share,
      stubHelpers: Object.values(HELPERS),
      without: withoutHooks(name, facts),
    })
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

/** undefined when the kernel takes it without too much work, else what it says. `tell` hears how much. */
export async function runLoadCase(given: LoadCase, facts: KernelFacts, tell: (work: string) => void): Promise<string | undefined> {
  const options = { cfg: given.cfg, stubHelpers: facts.missingHelpers, without: withoutHooks(given.object, facts) }
  try {
    const { object, told = {} } = await loadObject(given.object, { ...options, statistics: true })
    object.close()
    const works = Object.entries(told).map(([name, text]) => [name, parseWork(text)] as const)
    tell(works.map(([name, work]) => `${name} ${work === undefined ? 'untold' : `${work.instructions}/${work.states}`}`).join(', '))
    return works.map(([name, work]) => tooMuch(name, work, options.without)).find((wrong) => wrong !== undefined)
  } catch (error) {
    return (await plainRefusal(given.object, options)) ?? `it loads, but not with statistics: ${refusal(error)}`
  }
}

function tooMuch(program: string, work: VerifierWork | undefined, without: readonly string[]): string | undefined {
  if (work === undefined) return without.includes(program) ? undefined : `${program}: its work is not told`
  return isTooMuch(work) ? `${program} is too much work: ${JSON.stringify(work)}` : undefined
}

/** With statistics there is no log. */
async function plainRefusal(name: ObjectName, options: LoadOptions): Promise<string | undefined> {
  try {
    const { object } = await loadObject(name, options)
    object.close()
    return undefined
  } catch (error) {
    return refusal(error)
  }
}

/** The end of the verifier's log says where it stopped. */
function refusal(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const log = 'verifierLog' in error && typeof error.verifierLog === 'string' ? error.verifierLog : ''
  const end = log
    .trim()
    .split('\n')
    .slice(-12)
    .map((line) => line.slice(0, 200))
  return (log === '' ? [error.message] : [error.message, ...end]).join('\n    ')
}
