// SPDX-License-Identifier: Apache-2.0
/** The program that already is where ours go, which may be another's. Layer: agent/dataplane. */
import { BpfProgram } from '#native'
import { errorCode } from '#lib/base/errors.ts'

export interface FoundProgram {
  readonly id: number
  readonly name: string
  /** by its name */
  readonly ours: boolean
}

const NOTHING_THERE: readonly (string | undefined)[] = ['ENODEV', 'ENOENT', 'EINVAL']

/** `query`: its id. Undefined when there is no program, hook or interface. */
export function foundProgram(query: () => number | undefined, ourName: RegExp): FoundProgram | undefined {
  try {
    const id = query()
    if (id === undefined) return undefined
    const program = BpfProgram.openId(id)
    try {
      const { name } = program.info()
      return { id, name, ours: ourName.test(name) }
    } finally {
      program.close()
    }
  } catch (thrown) {
    if (NOTHING_THERE.includes(errorCode(thrown))) return undefined
    throw thrown
  }
}
