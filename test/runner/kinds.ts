// SPDX-License-Identifier: Apache-2.0
/** Which kind of test a path is of: its project of vitest, what is built for it, and what it runs under.
 * Layer: test. */
import { inOwnNamespaces } from '../../testkit/base/namespaces.ts'

export interface Kind {
  /** of vitest.config.ts */
  readonly project: string
  /** of the Makefile */
  readonly targets: readonly string[]
  /** in front of the command */
  readonly prefix: readonly string[]
}

const IN_PROCESS: Kind = { project: 'kernel', targets: ['bpf', 'native'], prefix: inOwnNamespaces }

/** The first whose folder the path lies in. */
const KINDS: readonly (readonly [folder: string, kind: Kind])[] = [
  ['test/native/', IN_PROCESS],
  ['test/kernel/packets', IN_PROCESS],
  ['test/kernel/frames', IN_PROCESS],
  ['test/kernel/', { project: 'kernel', targets: ['all'], prefix: inOwnNamespaces }],
  ['test/apiserver/', { project: 'api', targets: ['all', 'kubernetes'], prefix: inOwnNamespaces }],
  ['test/lab/', { project: 'lab', targets: ['all'], prefix: [] }],
  ['test/cluster/', { project: 'e2e', targets: ['all', 'kubernetes'], prefix: [] }],
]

const UNIT: Kind = { project: 'unit', targets: ['unit-deps'], prefix: [] }

export function kindOf(path: string): Kind {
  const inside = `${path.replace(/^\.\//, '')}/`
  return KINDS.find(([folder]) => inside.startsWith(folder))?.[1] ?? UNIT
}
