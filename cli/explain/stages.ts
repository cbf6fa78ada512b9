// SPDX-License-Identifier: Apache-2.0
/** Whose rules a packet is asked about, one after the other. Layer: cli (pure). */
import type { HostStage } from '#agent/policy/host-stages.ts'

/** A pod's own rules, or those of a stage of a host endpoint. */
export type Stage = 'pod' | HostStage

/** What stands behind the endpoint. */
export const STAGES: Readonly<Record<Stage, string>> = {
  pod: '',
  untracked: ', untracked',
  early: ', before translation',
  forward: ', forwarded',
  normal: '',
}

/** The first check that decides ends it: those behind are not asked. */
export function inTurn<Q, C extends { readonly verdict: 'allow' | 'deny' | 'open' }>(
  queries: readonly Q[],
  ask: (query: Q) => readonly C[],
): readonly C[] {
  const checks: C[] = []
  for (const query of queries) {
    const asked = ask(query)
    checks.push(...asked)
    if (asked.some(({ verdict }) => verdict !== 'open')) break
  }
  return checks
}
