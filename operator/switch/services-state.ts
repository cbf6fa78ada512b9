// SPDX-License-Identifier: Apache-2.0
/** What a switch comes to in words: the state of component `services`. Layer: operator (pure). */
import { AFTER_PREFLIGHT } from '../status/conditions.ts'
import type { Cause, ComponentState } from '#lib/control/rollout.ts'
import { namesText } from '#lib/control/names-text.ts'
import { RETRY } from './mark.ts'
import type { NodeFound } from './observed.ts'
import { startText, type ProxyCommands } from './proxy-command.ts'
import { silentAgents } from './silent-agents.ts'
import type { Phase, Situation, Step } from './situation.ts'
import { proofIn, type Stand } from './standing.ts'

/** By which people know a phase. */
const PHASES: Readonly<Record<Exclude<Phase, 'Over'>, { readonly reason: string; readonly word: string }>> = {
  Preflight: { reason: AFTER_PREFLIGHT.reason, word: 'preflight' },
  Canary: { reason: 'Canary', word: 'canary' },
  Wave: { reason: 'Wave', word: 'wave' },
  Default: { reason: 'Default', word: 'default' },
  Finish: { reason: 'Finish', word: 'finish' },
  ProxyFirst: { reason: 'ProxyFirst', word: 'proxy' },
  Hold: { reason: 'Hold', word: 'hold' },
  Blocked: { reason: 'KubeProxyMissing', word: 'proxy' },
}

export function servicesState(situation: Situation, step: Step, commands: ProxyCommands): ComponentState {
  const degraded = degradedBy(situation, step, commands)
  const trouble = { ...(degraded === undefined ? {} : { degraded }), ...canaryNotes(situation, degraded) }
  const notes = notesOf(situation)
  if (step.phase === 'Over' && isServed(situation)) return { available: serving(situation, notes), ...trouble }
  const cause = step.phase === 'Over' ? { reason: 'WaitsForNodes', message: notes.join('; ') } : phaseCause(step.phase, situation, step)
  return { unavailable: degraded ?? cause, progressing: cause, ...trouble }
}

function isServed({ standings, asked: { mode } }: Situation): boolean {
  return standings.every(({ node, stand }) => {
    if (stand === 'skipped') return hasServed(node)
    return stand === 'serves' || (stand === 'unready' && node.status?.dataplane.mode === mode && hasServed(node))
  })
}

/** The node went away after it was proven, and will serve again. One of a new installation was never ready, though its
 * agent may have proven the mode. */
function hasServed({ status, unreadySince }: NodeFound): boolean {
  const proof = status && proofIn(status, status.dataplane.mode)
  return proof?.state === 'Proven' && Date.parse(proof.at) <= unreadySince
}

function serving({ asked, standings }: Situation, notes: readonly string[]): Cause {
  const count = standings.filter(({ stand }) => stand === 'serves').length
  return { reason: 'Serving', message: [`${asked.mode} mode on ${count} of ${standings.length} nodes`, ...notes].join('; ') }
}

/** "to BPF mode, phase canary: n1; not ready, waits up to 600 s: n7" */
function phaseCause(phase: keyof typeof PHASES, situation: Situation, { nodes }: Step): Cause {
  const { reason, word } = PHASES[phase]
  const about = nodes.length === 0 ? '' : `: ${namesText(nodes)}`
  return { reason, message: [`to ${situation.asked.mode} mode, phase ${word}${about}`, ...notesOf(situation)].join('; ') }
}

/** Nodes that are not as they are to be, by what keeps them. */
function notesOf({ standings, asked }: Situation): readonly string[] {
  const seconds = `${asked.nodeTimeoutMs / 1000} s`
  const texts: Partial<Readonly<Record<Stand, string>>> = {
    mute: 'no word of the agent',
    unready: `not ready, waits up to ${seconds}`,
    skipped: `left out, not ready for ${seconds}`,
    pending: 'still to come',
    changing: 'not proven yet',
  }
  const of = (text: string, nodes: readonly string[]): readonly string[] => (nodes.length === 0 ? [] : [`${text}: ${namesText(nodes)}`])
  const kept = Object.entries(texts).flatMap(([stand, text]) =>
    of(
      text,
      standings.filter((one) => one.stand === stand).map(({ node }) => node.name),
    ),
  )
  const cordoned = standings.filter(({ node, stand }) => node.isCordoned && stand !== 'serves').map(({ node }) => node.name)
  return [...kept, ...of('cordoned', cordoned)]
}

function degradedBy(situation: Situation, { phase, isCanaryMissing }: Step, commands: ProxyCommands): Cause | undefined {
  if (phase === 'Blocked') return { reason: 'KubeProxyMissing', message: missingText(situation, commands) }
  const { asked, standings } = situation
  if (isCanaryMissing) return { reason: 'CanaryMissing', message: canaryText(asked.canary ?? '') }
  const failed = standings.filter(({ stand }) => stand === 'failed' || stand === 'refused')
  const again = `such a node is tried again when the Installation changes, or its annotation ${RETRY}`
  if (failed.length > 0)
    return { reason: 'ProofFailed', message: `${whysText(failed.map(({ node: { name }, why }) => ({ name, why })))}; ${again}` }
  const silent = silentAgents(situation)
  if (silent.length === 0) return undefined
  return { reason: 'AgentSilent', message: `${whysText(silent)}; see the agents' pods on these nodes, and their logs` }
}

/** A canary that is no node is told before a switch has to wait for it. */
function canaryNotes({ asked: { canary }, standings }: Situation, degraded: Cause | undefined): Pick<ComponentState, 'notes'> {
  const isThere = canary === undefined || standings.some(({ node }) => node.name === canary)
  return isThere || degraded?.reason === 'CanaryMissing' ? {} : { notes: [canaryText(canary)] }
}

export function canaryText(canary: string): string {
  return `spec.nodeUpdateStrategy.canary: ${canary} is no node that has an agent`
}

const MOST_TOLD = 10

/** "a: no answer, b: no answer and 3 more" */
function whysText(nodes: readonly { readonly name: string; readonly why: string }[]): string {
  const said = nodes.slice(0, MOST_TOLD).map(({ name, why }) => `${name}: ${why}`)
  const more = nodes.length > said.length ? ` and ${nodes.length - said.length} more` : ''
  return `${said.join(', ')}${more}`
}

/** Why Standard mode cannot be, and what to do. */
function missingText({ observed: { proxy }, asked }: Situation, commands: ProxyCommands): string {
  const begin = 'in Standard mode kube-proxy serves'
  if (proxy.state === 'absent' && proxy.action === 'command')
    return `${begin}, and neither a pod nor an agent shows one: ${commands.start}; or set linuxDataplane to BPF`
  if (proxy.state === 'absent') return `${begin}, and there is none: install it, or set linuxDataplane to BPF`
  const manager = proxy.manager === undefined ? '' : `, and ${proxy.manager} manages it`
  const ours = asked.managesKubeProxy ? '' : '; or set kubeProxyManagement to Enabled'
  const or = proxy.state === 'stopped' ? ours : ', or set linuxDataplane to BPF'
  return `${begin}, and ${proxy.what} is stopped${manager}: ${startText(proxy, commands)}${or}`
}
