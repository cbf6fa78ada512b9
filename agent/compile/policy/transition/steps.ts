// SPDX-License-Identifier: Apache-2.0
/** The order in which the rows of a transition come into the kernel, so that every packet is judged by the rules
 * before or by those after. Layer: agent/compile (pure). */
import type { Sliced } from '#lib/base/async/slices.ts'
import type { AddressRow, EndpointRow, Epoch, PolicyRow, PolicyStep, SetRow } from '../tables.ts'

/** The rows of each step. They are asked for in the order of the steps, each once. */
export interface TransitionRows {
  /** new rulesets, and what those in use must know of identities that are new */
  rulesets(): Sliced<readonly SetRow[]>
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
  coarser(): Sliced<readonly SetRow[]>
  /** addresses and prefixes get the identities that they keep */
  settled(): readonly AddressRow[]
  /** prefixes that are as those around them, or that new endpoints needed meanwhile; wide ones first */
  prefixes(): readonly PolicyRow[]
  /** endpoints get, instead of twins, the rulesets that they keep */
  untwinned(): readonly EndpointRow[]
  bridged(): Epoch
  /** what nothing refers to any longer */
  unused(): Sliced<readonly PolicyRow[]>
}

type Draft = PolicyStep | { readonly kind: 'epoch'; readonly epoch: 'same' }

/** To be taken one after the other; none of them is empty. */
export function* transitionSteps(of: TransitionRows): Sliced<readonly PolicyStep[]> {
  // elements of a list are made in its order
  const drafts: readonly Draft[] = [
    { kind: 'add', rows: yield* of.rulesets() },
    { kind: 'reassign', rows: of.identities() },
    { kind: 'switch', rows: of.newcomers() },
    { kind: 'switch', rows: of.endpoints() },
    // before what their rulesets ask is not asked any more
    { kind: 'delete', rows: of.departed() },
    { kind: 'epoch', epoch: of.switched() },
    { kind: 'add', rows: yield* of.coarser() },
    { kind: 'reassign', rows: of.settled() },
    { kind: 'delete', rows: of.prefixes() },
    { kind: 'switch', rows: of.untwinned() },
    { kind: 'epoch', epoch: of.bridged() },
    { kind: 'delete', rows: yield* of.unused() },
  ]
  return drafts.filter(hasEffect)
}

function hasEffect(step: Draft): step is PolicyStep {
  return step.kind === 'epoch' ? step.epoch !== 'same' : step.rows.length > 0
}
