// SPDX-License-Identifier: Apache-2.0
/** The order in which the rows of a transition come into the kernel, so that every packet is judged by the rules
 * before or by those after. Layer: agent/compile (pure). */
import type { AddressRow, EndpointRow, Epoch, PolicyRow, PolicyStep, SetRow } from '../tables.ts'

/** The rows of each step. They are asked for in the order of the steps, each once. */
export interface TransitionRows {
  /** new rulesets, and what those in use must know of identities that are new */
  rulesets(): readonly SetRow[]
  /** addresses and prefixes get the identities that they have while endpoints switch */
  identities(): readonly AddressRow[]
  /** endpoints that had no row, with rulesets */
  newcomers(): readonly EndpointRow[]
  /** all others that get other rulesets */
  endpoints(): readonly EndpointRow[]
  /** endpoints that are gone */
  departed(): readonly EndpointRow[]
  /** whether flows are judged again for what was switched */
  switched(): Epoch
  /** what rulesets say of identities that came to be as old rulesets ask nothing any more */
  coarser(): readonly SetRow[]
  /** addresses and prefixes get the identities that they keep */
  settled(): readonly AddressRow[]
  /** prefixes that are as those around them, or that new endpoints needed meanwhile; wide ones first */
  prefixes(): readonly PolicyRow[]
  /** endpoints get, instead of twins, the rulesets that they keep */
  untwinned(): readonly EndpointRow[]
  bridged(): Epoch
  /** what nothing refers to any longer */
  unused(): readonly PolicyRow[]
}

type Draft = PolicyStep | { readonly kind: 'epoch'; readonly epoch: 'same' }

const ORDER: readonly ((rows: TransitionRows) => Draft)[] = [
  (of) => ({ kind: 'add', rows: of.rulesets() }),
  (of) => ({ kind: 'reassign', rows: of.identities() }),
  (of) => ({ kind: 'switch', rows: of.newcomers() }),
  (of) => ({ kind: 'switch', rows: of.endpoints() }),
  // before what their rulesets ask is not asked any more
  (of) => ({ kind: 'delete', rows: of.departed() }),
  (of) => ({ kind: 'epoch', epoch: of.switched() }),
  (of) => ({ kind: 'add', rows: of.coarser() }),
  (of) => ({ kind: 'reassign', rows: of.settled() }),
  (of) => ({ kind: 'delete', rows: of.prefixes() }),
  (of) => ({ kind: 'switch', rows: of.untwinned() }),
  (of) => ({ kind: 'epoch', epoch: of.bridged() }),
  (of) => ({ kind: 'delete', rows: of.unused() }),
]

/** To be taken one after the other; none of them is empty. */
export function transitionSteps(rows: TransitionRows): readonly PolicyStep[] {
  return ORDER.map((step) => step(rows)).filter(hasEffect)
}

function hasEffect(step: Draft): step is PolicyStep {
  return step.kind === 'epoch' ? step.epoch !== 'same' : step.rows.length > 0
}
