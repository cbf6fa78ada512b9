// SPDX-License-Identifier: Apache-2.0
/** kube-proxy comes back before an Installation goes: agents serve until it does. Layer: operator (pure). */
import { namesText } from '#lib/control/names-text.ts'
import type { Cause, ComponentState } from '#lib/control/rollout.ts'
import type { NodeFound, Observed } from './observed.ts'
import { startText, type ProxyCommands } from './proxy-command.ts'
import type { ProxyFound } from './proxy-found.ts'
import { isServedBy } from './to-standard.ts'

export interface Returning {
  readonly isToStart: boolean
  readonly state: ComponentState
}

/** A kube-proxy that does not come holds up no removal for longer. */
export const RETURN_MS = 120_000

export class ProxyReturn {
  #startedAt: number | undefined
  /** it was stopped by another, and that one has to start it */
  #isOthers = false
  #missing: Cause | undefined
  /** it is not looked at again: nodes may go meanwhile */
  #isOver = false

  /** Why nothing serves services once agents have gone; undefined: kube-proxy does, or the cluster has none. */
  get missing(): Cause | undefined {
    return this.#missing
  }

  /** `now`: ms that only grow. Undefined: nothing is waited for. */
  step(observed: Observed, commands: ProxyCommands, now: number): Returning | undefined {
    if (this.#isOver) return undefined
    this.#startedAt ??= now
    const { proxy, nodes } = observed
    const isStopped = proxy.state === 'stopped' || proxy.state === 'stopped-by-hand'
    const isToStart = proxy.state === 'stopped' && proxy.canBeChanged
    this.#isOthers ||= isStopped && !isToStart
    const unserved = nodes.filter((node) => node.isReady && !isServed(node, observed)).map(({ name }) => name)
    const isComing = proxy.state === 'running' && proxy.hasPods && (proxy.canBeChanged || this.#isOthers) && unserved.length > 0
    this.#isOver = !(isStopped || isComing) || now - this.#startedAt >= RETURN_MS
    this.#missing = isStopped ? missingCause(proxy, commands) : undefined
    if (this.#isOver) return undefined
    const where = unserved.length === 0 ? '' : ` on ${namesText(unserved)}`
    const cause = { reason: 'Removing', message: `${proxy.what} is to serve again${where}` }
    const degraded = isToStart || this.#missing === undefined ? {} : { degraded: this.#missing }
    return { isToStart, state: { unavailable: cause, progressing: cause, ...degraded } }
  }
}

function missingCause(proxy: ProxyFound, commands: ProxyCommands): Cause {
  const { state, what, manager, selector } = proxy
  const by = state === 'stopped-by-hand' ? (selector === '' ? ' by another' : ` by the node selector ${selector}`) : ''
  const managed = manager === undefined ? '' : `, and ${manager} manages it`
  const wait = `agents wait for it for ${RETURN_MS / 1000} s from the deletion on, then they go without it`
  return { reason: 'KubeProxyMissing', message: `${what} is stopped${by}${managed}: ${startText(proxy, commands)}; ${wait}` }
}

/** An agent that knows no switch says nothing of it. */
function isServed(node: NodeFound, observed: Observed): boolean {
  const { proxy } = observed
  return node.status === undefined ? proxy.isSettled && proxy.pods.get(node.name) === true : isServedBy(node, observed)
}
