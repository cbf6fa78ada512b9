// SPDX-License-Identifier: Apache-2.0
/** The switch between kube-proxy and us: looks at the cluster, and does what the pure step says. Layer: operator. */
import { getOrNone } from '#lib/api/absent.ts'
import type { ApiObject } from '#lib/api/resource.ts'
import { mapLimited } from '#lib/base/async/map-limited.ts'
import type { Component } from '#lib/kube/operator-resources.ts'
import { nodeNetworkStatusOf, type Mode } from '#lib/kube/objects/node-network-status.ts'
import { nodeTimeoutMs, type Computed } from '#lib/render/computed.ts'
import { imageOf } from '#lib/render/image.ts'
import { NODE } from '#lib/render/input.ts'
import { OUTSIDE } from '#lib/render/operator-pod.ts'
import type { Trouble } from '../objects/owned-objects.ts'
import { kubeProxyOf } from '../run/cluster-facts.ts'
import { ownAgents, podsOf, withTroubles, type StepOptions } from '../run/outcome.ts'
import { underLock } from '../status/datastore-lock.ts'
import type { ComponentState } from '#lib/control/rollout.ts'
import { askedAt } from './asked-at.ts'
import { Awaited } from './awaited.ts'
import { LockTimes } from './lock-times.ts'
import { RETRY, type Mark } from './mark.ts'
import { defaultMode, isMadeByUs, observe, type Observed } from './observed.ts'
import { renderAsking } from './outside/asking-pod.ts'
import { Elsewhere, otherNode, type Heard, type Question } from './outside/elsewhere.ts'
import { askedPlaces, Outside, outsidePlaces, PATIENCE_MS } from './outside/outside.ts'
import { proxyCommands } from './proxy-command.ts'
import { PLATFORM_NETWORK, proxyFound, type ProxyInput } from './proxy-found.ts'
import { proxyState } from './proxy-state.ts'
import { servicesState } from './services-state.ts'
import { LostWords } from './silent-agents.ts'
import type { Situation, Step, SwitchWrite } from './situation.ts'
import { proofIn } from './standing.ts'
import { nextStep, situationOf } from './step.ts'
import { placeOf, SwitchWriter, type Written } from './switch-writer.ts'

export interface SwitchQuestion {
  readonly installation: ApiObject
  readonly computed: Computed
}

export interface Look {
  readonly computed: Computed
  readonly situation: Situation
  readonly step: Step
}

/** nodes whose node ports are asked at a time */
const AT_ONCE = 32
/** So long another node is waited for that asks the own one: its pod is there after a few seconds, or not at all. */
const MOST_ELSEWHERE_MS = 30_000

export type SwitchStates = ReadonlyMap<Extract<Component, 'services' | 'proxy'>, ComponentState>

export class Switch {
  readonly #of: StepOptions
  readonly #writer: SwitchWriter
  readonly #awaited = new Awaited()
  readonly #outside: Outside
  readonly #elsewhere = new Elsewhere()
  readonly #locks = new LockTimes()
  readonly #lost = new LostWords()
  #troubles: readonly Trouble[] = []

  constructor(of: StepOptions) {
    const { client, clock, log, view, mayAct } = of
    this.#of = of
    this.#outside = new Outside({ clock })
    this.#writer = new SwitchWriter({ client, log, mayAct, whyLocked: () => view.lock })
  }

  /** What could not be written the last time. */
  get troubles(): readonly Trouble[] {
    return this.#troubles
  }

  /** What is there, and what is to be done next. */
  async look({ installation, computed }: SwitchQuestion, signal: AbortSignal): Promise<Look> {
    const { metadata } = installation
    this.#elsewhere.rest()
    const observed = await this.#withOutside(await this.observe(computed, signal), computed, signal)
    const situation = situationOf(observed, {
      mode: computed.linuxDataplane,
      managesKubeProxy: computed.managesKubeProxy,
      maxUnavailable: computed.maxUnavailable,
      canary: computed.canary,
      nodeTimeoutMs: nodeTimeoutMs(computed),
      askedAt: askedAt(installation),
      generation: metadata.generation ?? 0,
      retry: metadata.annotations?.[RETRY] ?? '',
      isPreflightPassed: false,
    })
    return { computed, situation, step: this.#nextStep(computed, situation) }
  }

  /** The same once nothing is in the way on any node. */
  afterPreflight({ computed, situation }: Look): Look {
    const passed = { ...situation, asked: { ...situation.asked, isPreflightPassed: true } }
    return { computed, situation: passed, step: this.#nextStep(computed, passed) }
  }

  /** What there is to be for the look: a pod on another node that asks the operator's own. */
  objects({ computed }: Look): readonly ApiObject[] {
    const { options, version } = this.#of
    const { awaited } = this.#elsewhere
    if (awaited === undefined) return []
    return [renderAsking({ namespace: options.systemNamespace, image: imageOf(computed, version), computed, ...awaited })]
  }

  /** The operator's own node is asked to change once another node has asked its node ports. */
  #nextStep(computed: Computed, situation: Situation): Step {
    const step = nextStep(situation)
    const { observed, asked } = situation
    const node = observed.nodes.find(({ isOperators }) => isOperators)
    const write = step.writes.find((one): one is Ask => isAsk(one) && one.node === node?.name)
    if (node === undefined || write === undefined) return step
    const from = otherNode(observed.nodes)
    const about = `before ${asked.mode} ${asked.generation} ${asked.retry}`
    const heard = this.#hear({ about, node: node.name, from, places: askedPlaces(node), patienceMs: 0 }, computed, observed)
    if (heard.kind === 'unheard') return step
    const others = step.writes.filter((one) => one !== write)
    if (heard.kind === 'waiting') return { ...step, writes: others }
    const mark = { ...write.mark, outside: heard.places, ...(from !== undefined && { from }) }
    return { ...step, writes: [...others, { ...write, mark }] }
  }

  #hear(question: Question, computed: Computed, { nodes }: Observed): Heard {
    const { clock } = this.#of
    const mostMs = Math.min(MOST_ELSEWHERE_MS, nodeTimeoutMs(computed) / 2)
    const isKept = question.patienceMs > 0
    return this.#elsewhere.hear(question, isKept, { nodes, pods: podsOf(this.#of, OUTSIDE), now: clock.now(), wall: clock.wall(), mostMs })
  }

  /** Before the first agent: that it comes up in this mode. True when it will: also a datastore that is locked holds up
   * no agent that goes by nothing else. */
  async begin(computed: Computed, signal: AbortSignal): Promise<boolean> {
    const found = this.#of.view.felixConfigurations.objects.get('/default')
    const { default: before } = await this.observe(computed, signal)
    if (found !== undefined && before?.mode === computed.linuxDataplane) return true
    await this.#write(computed, [{ kind: 'default', mode: computed.linuxDataplane }], signal)
    return this.#troubles.length === 0 || defaultMode({ default: before }) === computed.linuxDataplane
  }

  /** Nothing is written by what a watch has not told of yet. */
  async write({ computed, situation, step }: Look, signal: AbortSignal): Promise<void> {
    this.#troubles = []
    const { view, clock } = this.#of
    const all = [view.felixConfigurations, view.kubeSystemDaemonSets]
    const find = ({ named }: Written): ApiObject | undefined =>
      all.find(({ collection }) => collection.kind === named.kind)?.objects.get(placeOf(named))
    const isSeen = this.#awaited.isOver(find, clock.now())
    if (isSeen && step.writes.length > 0)
      await this.#write(computed, await this.#withPlaces(step.writes, situation.observed, signal), signal)
  }

  /** What a node's clients outside reach now, they are to reach afterwards. */
  async #withPlaces(writes: readonly SwitchWrite[], { nodes }: Observed, signal: AbortSignal): Promise<readonly SwitchWrite[]> {
    const byName = new Map(nodes.map((node) => [node.name, node]))
    return await mapLimited(writes, AT_ONCE, async (write) => {
      const node = isAsk(write) && write.mark.outside === undefined && byName.get(write.node)
      if (!node) return write
      return { ...write, mark: { ...write.mark, outside: await this.#outside.answering(node, signal) } }
    })
  }

  /** Node ports of nodes that have proven the new mode to themselves. */
  async #withOutside(observed: Observed, computed: Computed, signal: AbortSignal): Promise<Observed> {
    const to: Mode = computed.linuxDataplane
    const asked = observed.nodes.flatMap((node) => {
      const mark = observed.overrides.get(node.name)?.mark
      const isProven = node.isReady && node.status !== undefined && proofIn(node.status, to)?.state === 'Proven'
      if (!isProven || mark?.to !== to || mark.failed !== undefined) return []
      // a service may be gone by now
      const there = outsidePlaces(node.status.proof)
      return [{ node, from: mark.from, places: (mark.outside ?? []).filter((place) => there.includes(place)) }]
    })
    const found = new Map<string, readonly string[]>()
    await mapLimited(asked, AT_ONCE, async ({ node, from, places }) => {
      if (node.isOperators && from !== undefined) {
        const about = `after ${node.status?.proof?.at ?? ''}`
        const heard = this.#hear({ about, node: node.name, from, places, patienceMs: PATIENCE_MS }, computed, observed)
        if (heard.kind === 'answered')
          found.set(
            node.name,
            places.filter((place) => !heard.places.includes(place)),
          )
        if (heard.kind !== 'unheard') return
      }
      found.set(node.name, await this.#outside.silent(node, places, signal))
    })
    return { ...observed, outside: found }
  }

  states({ computed, situation, step }: Look): SwitchStates {
    const commands = proxyCommands(computed)
    const { note } = this.#elsewhere
    const services = servicesState(situation, step, commands)
    const told = note === undefined ? services : { ...services, notes: [...(services.notes ?? []), note] }
    return new Map([
      ['services', withTroubles(underLock(told, this.#of.view.lock), this.#troubles)],
      ['proxy', proxyState(situation, step, commands)],
    ])
  }

  /** Nothing is waited for, and nothing changes but by what a watch tells. */
  isOver(look: Look): boolean {
    const { situation, step } = look
    const states = [...this.states(look).values()]
    const isEveryNode = situation.standings.every(({ stand }) => stand === 'serves' || stand === 'skipped' || stand === 'refused')
    return step.writes.length === 0 && isEveryNode && states.every(({ progressing }) => progressing === undefined)
  }

  async observe(computed: Computed, signal: AbortSignal): Promise<Observed> {
    const { view, client, clock, options } = this.#of
    const { proxy: action } = computed.platform
    const now = clock.wall()
    const nodes = [...view.nodes.objects.values()]
    const network = action === 'platform-operator' ? await getOrNone(client, PLATFORM_NETWORK, { signal }) : undefined
    const daemonSet = view.kubeSystemDaemonSets.objects.get(placeOf(kubeProxyOf(computed.platform)))
    const pods = view.kubeProxyPods.flatMap(({ objects }) => [...objects.values()])
    return observe({
      nodes,
      ownNode: options.node,
      nodeSelector: { ...computed.nodePods.nodeSelector },
      nodeNetworks: view.nodeNetworks.objects,
      agents: ownAgents(this.#of),
      agentPods: podsOf(this.#of, NODE),
      lostAt: this.#lost.saw(view.nodeNetworks.objects, now),
      configurations: view.felixConfigurations.objects.values(),
      proxy: proxyFound({ action, daemonSet, network, pods, nodes, sight: this.#sight(computed, nodes) }),
      locks: this.#locks.saw(view.lock !== undefined, now),
      now,
    })
  }

  #sight({ platform }: Computed, nodes: readonly ApiObject[]): ProxyInput['sight'] {
    if (!platform.hidesKubeProxy) return []
    const found = this.#of.view.nodeNetworks.objects
    return nodes.map(({ metadata }) => nodeNetworkStatusOf(found.get(`/${metadata.name}`)?.['status'])?.kubeProxy)
  }

  async startProxy(computed: Computed, signal: AbortSignal): Promise<void> {
    await this.#write(computed, [{ kind: 'proxy', runs: true }], signal)
  }

  /** Nothing of ours is left in FelixConfigurations; returns what could not be written. */
  async release(signal: AbortSignal): Promise<readonly Trouble[]> {
    const ours = [...this.#of.view.felixConfigurations.objects.values()].filter(isMadeByUs)
    return await this.#writer.releaseAll(ours, signal)
  }

  async #write(computed: Computed, writes: readonly SwitchWrite[], signal: AbortSignal): Promise<void> {
    const { view, clock } = this.#of
    const { written, troubles } = await this.#writer.write({
      writes,
      configurations: view.felixConfigurations.objects,
      proxy: computed.platform.proxy === 'platform-operator' ? PLATFORM_NETWORK : kubeProxyOf(computed.platform),
      keepsProxyRules: computed.platform.proxy === 'keep',
      signal,
    })
    this.#awaited.add(written, clock.now())
    this.#troubles = troubles
  }
}

type Ask = Extract<SwitchWrite, { readonly kind: 'override' }> & { readonly mark: Mark }

/** A node is to change its mode, or to say that it has. */
function isAsk(write: SwitchWrite): write is Ask {
  return write.kind === 'override' && write.mark !== undefined && write.mark.failed === undefined
}
