// SPDX-License-Identifier: Apache-2.0
/** The ways the kernel offers to put a tc program on an interface: each is used, read back and undone. Layer: test. */
import type { Direction } from '#native'
import { BpfLink, BpfProgram, ifindexOf, tcAttach, tcCreateHook, tcDestroyHook, tcDetach, tcQuery, tcxQuery } from '#native'
import { hasTcx } from '#agent/dataplane/attach/tcx.ts'

type Check = (name: string, wrong: string | undefined) => void
const DIRECTIONS: readonly Direction[] = ['ingress', 'egress']
export const SCHED_CLS = 3
/** r0 = TC_ACT_UNSPEC; exit */
export const PASS = Uint8Array.of(0xb7, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x95, 0, 0, 0, 0, 0, 0, 0)

/** On the interface `iface`, which must be a scratch one. clsact must work everywhere, tcx where the kernel answers
 * for it. */
export function attachCases(iface: string, check: Check): void {
  const ifindex = ifindexOf(iface)
  const program = BpfProgram.load({ type: SCHED_CLS, instructions: PASS, license: 'GPL' })
  for (const direction of DIRECTIONS) {
    check(
      `clsact ${direction}`,
      attempt(() => clsact(ifindex, direction, program)),
    )
    if (hasTcx())
      check(
        `tcx ${direction}`,
        attempt(() => tcx(ifindex, direction, program)),
      )
  }
  program.close()
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
