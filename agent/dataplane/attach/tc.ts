// SPDX-License-Identifier: Apache-2.0
/** Which way to attach to interfaces this kernel has. Layer: agent/dataplane. */
import { tcxQuery } from '#native'
import { errorCode } from '#lib/base/errors.ts'

/** The loopback device has this index in every network namespace. */
const LOOPBACK = 1

/** What a kernel says that does not know the hook, or not all of the question's fields. */
const UNKNOWN: ReadonlySet<string | undefined> = new Set(['EINVAL', 'E2BIG', 'ENOTSUP', 'EOPNOTSUPP'])

/** True when the kernel knows tcx: asks which programs are attached to the loopback device. */
export function hasTcx(): boolean {
  try {
    tcxQuery(LOOPBACK, 'ingress')
    return true
  } catch (thrown) {
    if (UNKNOWN.has(errorCode(thrown))) return false
    throw thrown
  }
}
