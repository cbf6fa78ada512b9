// SPDX-License-Identifier: Apache-2.0
/** Our program at the ingress of a device. Layer: cli. */
import { BpfProgram, tcQuery, tcxQuery } from '#native'
import { errorCode } from '#lib/base/errors.ts'
import { PinsError } from '../../errors.ts'

/** Where the agent's filters are on kernels without tcx. */
const PLACE = { direction: 'ingress', handle: 1, priority: 1 } as const

/** The caller closes it. Throws PinsError when it is not there. */
export function attachedProgram(name: string, { index, device }: { readonly index: number; readonly device: string }): BpfProgram {
  for (const id of [...tcxIds(index), ...tcIds(index)]) {
    const program = BpfProgram.openId(id)
    if (program.info().name === name) return program
    program.close()
  }
  throw new PinsError(`${name} is not attached to ${device}: does the agent run?`)
}

function tcxIds(index: number): readonly number[] {
  return ifAny(() => tcxQuery(index, PLACE.direction).programIds) ?? []
}

function tcIds(index: number): readonly number[] {
  const id = ifAny(() => tcQuery({ ...PLACE, ifindex: index }))
  return id === undefined ? [] : [id]
}

/** undefined: the kernel has no such hooks, or nothing is there. */
function ifAny<T>(query: () => T): T | undefined {
  try {
    return query()
  } catch (thrown) {
    if (errorCode(thrown) === 'EPERM') throw thrown
    return undefined
  }
}
