// SPDX-License-Identifier: Apache-2.0
/** The ways the kernel offers to put a tc program on an interface: each is used, read back and undone. Layer: test. */
import type { BpfProgram, Direction } from '#native'
import { BpfLink, ifindexOf, tcAttach, tcCreateHook, tcDestroyHook, tcDetach, tcQuery, tcxQuery } from '#native'
import { loadObject } from '../support/objects.ts'
import type { KernelFacts } from './kernel-facts.ts'
import { testCfg } from './packet-runner.ts'

type Check = (name: string, wrong: string | undefined) => void
const DIRECTIONS: readonly Direction[] = ['ingress', 'egress']

/** On the interface `iface`, which must be a scratch one. clsact must work everywhere; `tcx` only where it is known to be. */
export async function attachCases(iface: string, facts: KernelFacts, check: Check): Promise<void> {
  const loaded = await loadObject('host', { cfg: testCfg(facts.features), stubHelpers: facts.missingHelpers })
  const ifindex = ifindexOf(iface)
  for (const direction of DIRECTIONS) {
    const program = loaded.object.program(direction === 'ingress' ? 'from_host' : 'to_host')
    check(
      `clsact ${direction}`,
      attempt(() => clsact(ifindex, direction, program)),
    )
    if (hasTcx(ifindex))
      check(
        `tcx ${direction}`,
        attempt(() => tcx(ifindex, direction, program)),
      )
    program.close()
  }
  loaded.object.close()
}

export function hasTcx(ifindex: number): boolean {
  try {
    tcxQuery(ifindex, 'ingress')
    return true
  } catch {
    return false
  }
}

function clsact(ifindex: number, direction: Direction, program: BpfProgram): string | undefined {
  const filter = { ifindex, direction, handle: 1, priority: 1 }
  tcCreateHook(ifindex)
  const id = tcAttach(filter, program)
  const again = tcAttach(filter, program)
  const found = tcQuery(filter)
  const detached = tcDetach(filter)
  const after = tcQuery(filter)
  tcDestroyHook(ifindex)
  if (found !== id || again !== id) return `attached program ${id}, found ${String(found)}`
  return detached && after === undefined ? undefined : `detached: ${String(detached)}, then found ${String(after)}`
}

function tcx(ifindex: number, direction: Direction, program: BpfProgram): string | undefined {
  const { id } = program.info()
  const link = BpfLink.attachTcx(program, ifindex, direction)
  const { programIds } = tcxQuery(ifindex, direction)
  link.close()
  const after = tcxQuery(ifindex, direction).programIds
  if (!programIds.includes(id)) return `attached program ${id}, found ${programIds.join(' ')}`
  return after.includes(id) ? 'closing the link left the program there' : undefined
}

function attempt(run: () => string | undefined): string | undefined {
  try {
    return run()
  } catch (error) {
    return String(error)
  }
}
