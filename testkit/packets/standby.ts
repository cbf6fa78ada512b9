// SPDX-License-Identifier: Apache-2.0
/** What stands by behind a program has nothing to do with a packet that was passed on (decisions/015).
 * Layer: testkit. */
import type { BpfProgram } from '#native'
import type { ProgramName } from './case.ts'
import { runMarked, type Came, type Run } from './mark.ts'
import { program, type Loaded } from './objects.ts'

const PASS = 0xffffffff

export type StandbyPrograms = ReadonlyMap<ProgramName, BpfProgram>

export function standbyPrograms(loaded: Loaded): StandbyPrograms {
  const hooks: readonly ProgramName[] = ['from_workload', 'to_workload', 'from_host', 'to_host']
  return new Map(hooks.map((hook) => [hook, program(loaded, `standby_${hook}`)]))
}

/** What differs; undefined: nothing, or it was not passed on. */
export function judgeStandby(standby: BpfProgram | undefined, came: Came, { retval, dataOut, word, mark }: Run): string | undefined {
  if (standby === undefined || retval !== PASS) return undefined
  if (word === 0) return 'passed on, and what stands by is not told'
  const after = runMarked(standby, dataOut, { ...came, mark, word })
  const isSame = after.retval === PASS && after.mark === mark && Buffer.compare(after.dataOut, dataOut) === 0
  return isSame ? undefined : `what stands by made something of what was passed on: ${after.retval | 0}`
}
