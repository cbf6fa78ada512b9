// SPDX-License-Identifier: Apache-2.0
/** Which nodes are asked next: one first, alone, then as many at a time as may be away. Layer: operator (pure). */
import type { Standing } from './standing.ts'

export interface WaveInput {
  readonly standings: readonly Standing[]
  /** undefined: the first that is fit */
  readonly canary: string | undefined
  /** a number of nodes, or "10%" of all */
  readonly maxUnavailable: number | string
  /** false: of this node more has to be so before it is asked */
  readonly isAskable: (node: string) => boolean
}

export interface Wave {
  readonly phase: 'Canary' | 'Wave'
  /** nodes to ask now */
  readonly next: readonly string[]
  /** the node that is to be first is no node of the cluster, and none serves yet */
  readonly isCanaryMissing: boolean
}

/** A node that failed, or whose kubelet says nothing, stops it. */
export function nextWave(input: WaveInput): Wave {
  const { standings, canary, maxUnavailable, isAskable } = input
  const first = standings.find(({ node }) => node.name === canary)
  const isCanaryMissing = canary !== undefined && first === undefined && !standings.some(({ stand }) => stand === 'serves')
  const phase = isCanaryOver(standings, first) ? 'Wave' : 'Canary'
  const isStopped = isCanaryMissing || standings.some(({ stand }) => stand === 'unready' || stand === 'refused' || stand === 'failed')
  if (isStopped) return { phase, next: [], isCanaryMissing }
  const asked = standings.filter(({ stand }) => stand === 'changing').length
  const pending = standings.filter(({ stand }) => stand === 'pending').sort(phase === 'Canary' ? byDistance : byFitness)
  const chosen = phase === 'Canary' && first !== undefined && first.stand !== 'skipped' ? pending.filter((one) => one === first) : pending
  const most = phase === 'Canary' ? 1 : limitOf(maxUnavailable, standings.length)
  const next = chosen
    .map(({ node }) => node.name)
    .filter(isAskable)
    .slice(0, Math.max(0, most - asked))
  return { phase, next, isCanaryMissing }
}

/** Its proof stands while its agent is still to hear that its override went. */
function isCanaryOver(standings: readonly Standing[], first: Standing | undefined): boolean {
  if (first !== undefined && first.stand !== 'skipped') return first.isProven
  return standings.some(({ isProven }) => isProven)
}

/** Cordoned ones last: an administrator may be at work there. */
function byFitness(a: Standing, b: Standing): number {
  return Number(a.node.isCordoned) - Number(b.node.isCordoned) || (a.node.name < b.node.name ? -1 : 1)
}

/** The operator sees the first one from outside, where it can. */
function byDistance(a: Standing, b: Standing): number {
  return Number(a.node.isCordoned) - Number(b.node.isCordoned) || Number(a.node.isOperators) - Number(b.node.isOperators) || byFitness(a, b)
}

/** Of a part of all at least one, as of a DaemonSet. */
function limitOf(most: number | string, nodes: number): number {
  return typeof most === 'number' ? most : Math.max(1, Math.ceil((Number.parseInt(most, 10) * nodes) / 100))
}
