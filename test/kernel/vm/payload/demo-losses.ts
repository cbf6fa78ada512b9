// SPDX-License-Identifier: Apache-2.0
/** What of the demo measures losses: an emulated machine has its own. Layer: test. */
import type { Except } from './demo-tally.ts'

export const LOSSES: readonly Except[] = [
  { chapter: 'Both agents are killed and started again while traffic flows', rows: ['control', 'agents killed'] },
]
