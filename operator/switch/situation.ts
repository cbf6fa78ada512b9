// SPDX-License-Identifier: Apache-2.0
/** A switch as it stands, and the writes by which nodes move in it. Layer: operator (pure). */
import type { Mode } from '#lib/kube/objects/node-network-status.ts'
import type { Mark } from './mark.ts'
import { askedMode, defaultMode, type Observed } from './observed.ts'
import type { Standing } from './standing.ts'
import { nextWave } from './wave.ts'

export interface AskedSwitch {
  readonly mode: Mode
  readonly managesKubeProxy: boolean
  readonly maxUnavailable: number | string
  readonly canary: string | undefined
  readonly nodeTimeoutMs: number
  /** when the mode was asked for, in ms since 1970 */
  readonly askedAt: number
  /** of the Installation */
  readonly generation: number
  /** value of its annotation by which nodes that went back are tried again */
  readonly retry: string
  /** nothing is in the way of BPF mode on any node */
  readonly isPreflightPassed: boolean
}

export interface Situation {
  readonly observed: Observed
  readonly asked: AskedSwitch
  readonly standings: readonly Standing[]
}

export type SwitchWrite =
  | { readonly kind: 'default'; readonly mode: Mode }
  /** `mode` undefined: as the default; without a mark as well: nothing of ours is left of it */
  | { readonly kind: 'override'; readonly node: string; readonly mode: Mode | undefined; readonly mark: Mark | undefined }
  | { readonly kind: 'proxy'; readonly runs: boolean }

/** `Hold`: each node keeps its mode while the default becomes another. `Blocked`: it cannot go on by itself. `Over`:
 * all is as it is asked for, or will be without us. */
export type Phase = 'Preflight' | 'Canary' | 'Wave' | 'Default' | 'Finish' | 'ProxyFirst' | 'Hold' | 'Blocked' | 'Over'

export interface Step {
  readonly phase: Phase
  readonly writes: readonly SwitchWrite[]
  /** nodes that the phase is about */
  readonly nodes: readonly string[]
  /** the canary of the Installation is no node */
  readonly isCanaryMissing: boolean
}

export function stepOf(phase: Phase, writes: readonly SwitchWrite[] = [], nodes: readonly string[] = []): Step {
  return { phase, writes, nodes, isCanaryMissing: false }
}

/** Every node serves, but for those that are not waited for. */
export function isEverywhere({ standings }: Situation): boolean {
  return standings.every(({ stand }) => stand === 'serves' || stand === 'skipped')
}

/** Nodes come one after the other; those that do not serve go back, and what is no longer needed goes. */
export function follow(situation: Situation, isAskable: (node: string) => boolean): Step {
  const { observed, standings, asked } = situation
  const { canary, maxUnavailable, mode } = asked
  const { phase, next, isCanaryMissing } = nextWave({ standings, canary, maxUnavailable, isAskable })
  const left = defaultMode(observed) === mode ? tidy(situation) : []
  const writes = [...takeBack(situation), ...left, ...askAnew(situation), ...next.map((node) => ask(node, situation))]
  const changing = standings.filter(({ stand }) => stand === 'changing').map(({ node }) => node.name)
  if (isMoving(situation) && !isSettling(situation)) return { phase, writes, nodes: [...changing, ...next], isCanaryMissing }
  if (isMoving(situation)) return stepOf('Finish', writes, changing)
  return stepOf(left.length > 0 ? 'Finish' : 'Over', writes)
}

/** A node is still to be asked, or was asked and does not serve yet. */
function isMoving({ observed, standings, asked }: Situation): boolean {
  if (defaultMode(observed) !== asked.mode) return true
  return standings.some(({ node, stand }) => {
    if (stand === 'serves' || stand === 'skipped') return false
    return stand === 'pending' || stand === 'refused' || observed.overrides.get(node.name)?.isOurs === true
  })
}

/** The default says it and every node has proven it: agents are still to hear of the last changes of configurations. */
function isSettling({ observed, standings, asked: { mode } }: Situation): boolean {
  if (defaultMode(observed) !== mode) return false
  return standings.every(({ node, stand, isProven }) => {
    const isAway = stand === 'unready' && askedMode(node.name, observed) === mode
    return isProven || isAway || stand === 'skipped'
  })
}

/** The node is to be in this mode from now on. */
function ask(node: string, { observed, asked: { mode } }: Situation): SwitchWrite {
  const uid = observed.nodes.find(({ name }) => name === node)?.uid
  const mark = { to: mode, at: observed.now, ...(uid !== undefined && { uid }) }
  return { kind: 'override', node, mode: defaultMode(observed) === mode ? undefined : mode, mark }
}

/** Nodes that were made anew under the name of one that was asked: their own time begins. */
function askAnew(situation: Situation): readonly SwitchWrite[] {
  const { observed, asked, standings } = situation
  return standings.flatMap(({ node: { name }, stand }) => {
    const isAsked = observed.overrides.get(name)?.isInherited === true && askedMode(name, observed) === asked.mode
    return isAsked && (stand === 'changing' || stand === 'failed' || stand === 'mute') ? [ask(name, situation)] : []
  })
}

/** Nodes that we have asked, and that do not serve: each goes back to where it was. */
function takeBack({ observed, asked, standings }: Situation): readonly SwitchWrite[] {
  const { mode: to, generation, retry } = asked
  const back: Mode = to === 'BPF' ? 'Standard' : 'BPF'
  // in Standard mode another has to serve it
  if (back === 'Standard' && observed.proxy.state !== 'running') return []
  return standings.flatMap(({ node: { name }, stand, why }): SwitchWrite[] => {
    const mark = observed.overrides.get(name)?.mark
    if (stand !== 'failed' || mark?.to !== to) return []
    const failed = { reason: why, generation, retry }
    return [{ kind: 'override', node: name, mode: defaultMode(observed) === back ? undefined : back, mark: { ...mark, failed } }]
  })
}

/** Overrides of ours that say what the default says, and those of nodes that are gone. */
function tidy({ observed, standings }: Situation): readonly SwitchWrite[] {
  const stands = new Map(standings.map(({ node, stand }) => [node.name, stand]))
  return [...observed.overrides].flatMap(([node, { isOurs }]): SwitchWrite[] => {
    const stand = stands.get(node)
    const isDone = stand === undefined || stand === 'serves' || stand === 'skipped'
    const isNeeded = stand !== undefined && askedMode(node, observed) !== defaultMode(observed)
    return isOurs && isDone && !isNeeded ? [{ kind: 'override', node, mode: undefined, mark: undefined }] : []
  })
}
