// SPDX-License-Identifier: Apache-2.0
/** What goes, step by step, once the Installation is deleted. Layer: operator (pure).
 *
 * Each step is what the cluster is to have then; what is ours and not in it goes. Which step it is follows from what
 * is there, so another operator goes on where this one has ended. */
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { isObject } from '#lib/base/object.ts'
import { findCondition } from '#lib/kube/objects/conditions.ts'
import { CLEANUP, renderCleanup } from '#lib/render/cleanup-pod.ts'
import { nodeTimeoutMs } from '#lib/render/computed.ts'
import { NODE, type RenderInput } from '#lib/render/input.ts'
import { agentRights } from '#lib/render/agent-rights.ts'
import { renderNamespace } from '#lib/render/render.ts'
import { namesText } from '#lib/control/names-text.ts'
import { SILENT_MS, silentNodes } from '../status/silent-nodes.ts'
import { nodesWithAgents } from '../switch/observed.ts'
import { troubleCause, type ComponentState } from '#lib/control/rollout.ts'

export interface RemovalInput {
  readonly render: Omit<RenderInput, 'endpoint'>
  /** the namespace, and what pods in it need */
  readonly place: readonly ApiObject[]
  /** false: agents were never made, and no node is to be cleaned */
  readonly isInstalled: boolean
  /** undefined: there is none of ours any more */
  readonly agents: ApiObject | undefined
  readonly cleanup: ApiObject | undefined
  /** of the namespace that we install in */
  readonly pods: readonly ApiObject[]
  readonly nodes: readonly ApiObject[]
  /** ms that only grow */
  readonly now: number
  /** ms since 1970 */
  readonly wall: number
}

export interface RemovalStep {
  readonly objects: readonly ApiObject[]
  readonly state: ComponentState
  /** nothing is left, and the Installation may go */
  readonly isDone: boolean
}

/** Nodes that are not clean, and are no longer waited for. */
export interface Left {
  readonly nodes: readonly string[]
  /** which, and why */
  readonly message: string
}

/** A node whose kubelet says nothing is waited for so long; any other for nodeTimeout. */
export const SILENT_TIMEOUT_MS = SILENT_MS

export class Removal {
  #startedAt: number | undefined
  #isClean = false
  #left: Left | undefined

  /** Nodes that were left as they are; undefined: none. */
  get left(): Left | undefined {
    return this.#left
  }

  step(input: RemovalInput): RemovalStep {
    this.#startedAt ??= input.now
    if (!this.#isClean && input.isInstalled) {
      const silent = input.now - this.#startedAt < SILENT_TIMEOUT_MS ? new Set<string>() : silentNodes(input.nodes)
      const step = stopAgents(input, silent) ?? cleanNodes(input, silent)
      if (step !== undefined) return step
      this.#left = leftNodes(input, silent)
      this.#isClean = true
    }
    const state = waitingState(this.#left?.message ?? 'the nodes are clean', [])
    return { objects: [renderNamespace(input.render.namespace)], state, isDone: input.cleanup === undefined }
  }
}

/** Undefined: none is waited for any more. Their rights stay until then. */
function stopAgents(input: RemovalInput, silent: ReadonlySet<string>): RemovalStep | undefined {
  const { render, place, agents, pods } = input
  const awaited = pods.filter((pod) => isOf(pod, NODE) && !silent.has(nodeOf(pod)) && !isOver(pod.metadata.deletionTimestamp, input))
  if (agents === undefined && awaited.length === 0) return undefined
  const message =
    awaited.length === 0 ? 'the DaemonSet of the agents is still there' : `agents still run on ${namesText(awaited.map(nodeOf))}`
  const objects = [...place, ...agentRights(render).map(asApiObject)]
  return { objects, state: waitingState(message, []), isDone: false }
}

/** Undefined: no node is waited for any more. */
function cleanNodes(input: RemovalInput, silent: ReadonlySet<string>): RemovalStep | undefined {
  const unclean = uncleanNodes(input).filter((name) => !silent.has(name))
  if (unclean.length === 0 || isOver(input.cleanup?.metadata['creationTimestamp'], input)) return undefined
  const objects = [...input.place, ...renderCleanup(input.render)]
  return { objects, state: waitingState(`still to be cleaned: ${namesText(unclean)}`, cleanupPods(input)), isDone: false }
}

/** By the API server's time of it, for another operator may have begun. */
function isOver(since: unknown, { wall, render }: RemovalInput): boolean {
  return typeof since === 'string' && wall - Date.parse(since) >= nodeTimeoutMs(render.computed)
}

function leftNodes(input: RemovalInput, silent: ReadonlySet<string>): Left | undefined {
  const unclean = uncleanNodes(input)
  if (unclean.length === 0) return undefined
  const [unheard, late] = [unclean.filter((name) => silent.has(name)), unclean.filter((name) => !silent.has(name))]
  const why = troubleCause(cleanupPods(input).filter((pod) => late.includes(nodeOf(pod))))
  const texts = [
    ...(unheard.length === 0 ? [] : [`not cleaned, as they did not answer: ${namesText(unheard)}`]),
    ...(late.length === 0 ? [] : [`not clean after ${input.render.computed.nodeTimeout}: ${namesText(late)}`]),
    ...(why === undefined ? [] : [why.message]),
  ]
  return { nodes: unclean, message: texts.join('; ') }
}

function uncleanNodes(input: RemovalInput): readonly string[] {
  const clean = new Set(cleanupPods(input).filter(isReady).map(nodeOf))
  const asked = nodesWithAgents(input.nodes, { ...input.render.computed.nodePods.nodeSelector })
  return asked.map(({ metadata }) => metadata.name).filter((name) => !clean.has(name))
}

function cleanupPods({ pods }: RemovalInput): readonly ApiObject[] {
  return pods.filter((pod) => isOf(pod, CLEANUP))
}

/** One that is about to go may not have done anything yet. */
function isReady(pod: ApiObject): boolean {
  return pod.metadata.deletionTimestamp === undefined && findCondition(pod, 'Ready')?.status === 'True'
}

function waitingState(message: string, pods: readonly ApiObject[]): ComponentState {
  const cause = { reason: 'Removing', message }
  const degraded = troubleCause(pods)
  return { unavailable: cause, progressing: cause, ...(degraded === undefined ? {} : { degraded }) }
}

function isOf({ metadata }: ApiObject, name: string): boolean {
  return metadata.labels?.['app.kubernetes.io/name'] === name
}

function nodeOf({ spec }: ApiObject): string {
  return isObject(spec) && typeof spec['nodeName'] === 'string' ? spec['nodeName'] : ''
}
