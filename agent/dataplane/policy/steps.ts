// SPDX-License-Identifier: Apache-2.0
/** Policy as parts of the apply loop. Layer: agent/dataplane. */
import { NOTHING_DONE, type Part } from '../reconcile/step.ts'
import type { PolicyPlane } from './policy-dataplane.ts'

export interface PolicyParts {
  readonly steps: Part
  /** Undone as long as not all was in the kernel that was wanted when these maps were taken up; later steps that fail do not matter to it. */
  readonly whole: Part
  readonly epoch: Part
}

/** Asked for anew each time: a new configuration may have brought another one. */
export function policyParts(now: () => PolicyPlane | undefined): PolicyParts {
  return {
    steps: {
      name: 'policy',
      pending: () => now()?.queue.pending() === true,
      apply: () => now()?.queue.apply() ?? NOTHING_DONE,
    },
    whole: {
      name: 'policy.whole',
      pending: () => now()?.queue.isWhole === false,
      apply: () => ({ ...NOTHING_DONE, undone: true }),
    },
    epoch: {
      name: 'epoch',
      pending: () => now()?.epoch.pending() === true,
      apply: () => now()?.epoch.apply() ?? NOTHING_DONE,
    },
  }
}
