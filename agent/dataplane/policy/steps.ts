// SPDX-License-Identifier: Apache-2.0
/** Policy as parts of the apply loop. Layer: agent/dataplane. */
import { NOTHING_DONE, type ReconcileStep } from '../reconcile/step.ts'
import type { PolicyDataplane } from './policy-dataplane.ts'

export interface PolicySteps {
  readonly steps: ReconcileStep
  /** Undone as long as not all was in the kernel that was wanted when these maps were taken up; later steps that
   * fail do not matter to it. */
  readonly whole: ReconcileStep
  readonly epoch: ReconcileStep
}

/** Looked up each time: a new configuration may have brought another one. */
export function policySteps(now: () => PolicyDataplane | undefined): PolicySteps {
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
