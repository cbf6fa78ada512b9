// SPDX-License-Identifier: Apache-2.0
/** What a run of the gate's runner says of a fault that was made on purpose. Layer: test (pure). */
import type { Fault } from './faults.ts'

export type Verdict = 'found' | 'not found' | 'unsteady' | 'elsewhere'

/** "found": the run is red, and its list of failures names the stage, and the test file where the fault has one.
 * "elsewhere": the run is red for another reason. */
export function verdictOf(
  { stage, test }: Pick<Fault, 'stage' | 'test'>,
  { status, output }: { readonly status: number | null; readonly output: string },
): Verdict {
  if (/^unsteady: /m.test(output)) return 'unsteady'
  if (status === 0) return 'not found'
  const list = output.slice(output.lastIndexOf('\nfailed:\n'))
  return list.includes(`\n  ${stage}: ${test ?? ''}`) ? 'found' : 'elsewhere'
}
