// SPDX-License-Identifier: Apache-2.0
/** Takes away what an Installation has made, step by step (removal.ts), and then lets it go. Layer: operator. */
import type { ApiObject } from '#lib/api/resource.ts'
import { CLEANUP } from '#lib/render/cleanup-pod.ts'
import { imageOf } from '#lib/render/image.ts'
import type { Computed } from '#lib/render/computed.ts'
import { setFinalizer } from '../objects/finalizer.ts'
import { takeBackNodeWords } from '../objects/node-words.ts'
import type { Trouble } from '../objects/owned-objects.ts'
import { endpointOf } from '../status/installation-status.ts'
import { proxyCommands } from '../switch/proxy-command.ts'
import { ProxyReturn, type Returning } from '../switch/proxy-return.ts'
import { Switch } from '../switch/switch.ts'
import { readLeaving } from './desired.ts'
import { daemonSet, isInstalled, make, otherAgents, ownAgents, placeOf, withTroubles, type Outcome, type StepOptions } from './outcome.ts'
import { Removal, type Left } from './removal.ts'

export class Uninstall {
  readonly #of: StepOptions
  readonly #switch: Switch
  /** of the Installation with this uid */
  #current: { readonly uid: string | undefined; readonly removal: Removal; readonly proxy: ProxyReturn } | undefined

  constructor(of: StepOptions) {
    this.#of = of
    this.#switch = new Switch(of)
  }

  /** Undefined: it is done. */
  async step(installation: ApiObject, signal: AbortSignal): Promise<Outcome | undefined> {
    const { view, options, version, clock, owned, facts } = this.#of
    const { uid } = installation.metadata
    const current = this.#current?.uid === uid ? this.#current : undefined
    const { removal, proxy } = (this.#current = current ?? { uid, removal: new Removal(), proxy: new ProxyReturn() })
    const nodes = [...view.nodes.objects.values()]
    const computed = readLeaving(installation, await facts.read({ installation, nodes, isInstalled: true, signal }))
    const returning = isInstalled(installation, this.#of)
      ? proxy.step(await this.#switch.observe(computed, signal), proxyCommands(computed), clock.now())
      : undefined
    if (returning !== undefined) return await this.#awaitProxy(computed, { installation, returning }, signal)
    const step = removal.step({
      render: { namespace: options.systemNamespace, image: imageOf(computed, version), computed },
      place: placeOf(computed.imagePullSecrets, this.#of).objects,
      isInstalled: isInstalled(installation, this.#of),
      agents: ownAgents(this.#of),
      cleanup: daemonSet(this.#of, CLEANUP),
      pods: [...view.pods.objects.values()],
      nodes,
      now: clock.now(),
      wall: clock.wall(),
    })
    // its agents would put back what a cleanup takes
    const other = otherAgents(this.#of)
    if (other === undefined) await make(step.objects, this.#of, signal)
    const isClean = step.isDone && owned.complete && owned.leftAlone.length === 0 && other === undefined
    const left = isClean ? await this.#release(signal) : []
    if (isClean && left.length === 0 && this.#of.mayAct()) {
      await this.#end(installation, removal.left, signal)
      return undefined
    }
    const degraded = other ?? step.state.degraded ?? proxy.missing
    const waiting = degraded === undefined ? step.state : { ...step.state, degraded }
    const states = new Map([['network', withTroubles(waiting, isClean ? left : owned.troubles)]] as const)
    return { computed, endpoint: undefined, isInstalled: isInstalled(installation, this.#of), states, isAgain: true }
  }

  /** Agents serve until it does. */
  async #awaitProxy(
    computed: Computed,
    { installation, returning }: { readonly installation: ApiObject; readonly returning: Returning },
    signal: AbortSignal,
  ): Promise<Outcome> {
    if (returning.isToStart) await this.#switch.startProxy(computed, signal)
    const states = new Map([['network', withTroubles(returning.state, this.#switch.troubles)]] as const)
    return { computed, endpoint: endpointOf(installation), isInstalled: true, states, isAgain: true }
  }

  /** What is ours in objects of others, and what agents have said: nothing of it is left. Returns what could not be
   * written. */
  async #release(signal: AbortSignal): Promise<readonly Trouble[]> {
    const { client, view, mayAct } = this.#of
    const fields = await this.#switch.release(signal)
    const words = { nodes: view.nodes.objects.values(), nodeNetworks: view.nodeNetworks.objects.values() }
    const troubles = await takeBackNodeWords({ client, ...words, whyLocked: () => view.lock, mayAct }, signal)
    return [...fields, ...troubles]
  }

  async #end(installation: ApiObject, left: Left | undefined, signal: AbortSignal): Promise<void> {
    const { client, events, log } = this.#of
    const notice =
      left === undefined
        ? ({ type: 'Normal', reason: 'Removed', message: 'all nodes are clean' } as const)
        : ({ type: 'Warning', reason: 'NodesLeft', message: left.message } as const)
    await events.write(installation, notice, signal)
    log.info({ skipped: left?.nodes ?? [] }, 'installation.removed')
    await setFinalizer(client, { object: installation, present: false, signal })
  }
}
