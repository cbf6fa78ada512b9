// SPDX-License-Identifier: Apache-2.0
/** Makes what an Installation asks for: first nothing but a look at the nodes, then pools, then agents.
 * Layer: operator. */
import type { ApiObject } from '#lib/api/resource.ts'
import { hostPort } from '#lib/base/ip.ts'
import { CONTROLLERS_NAME } from '#lib/kube/objects/automatic-host-endpoint.ts'
import type { Component } from '#lib/kube/operator-resources.ts'
import { FieldError } from '#lib/kube/parse/fields.ts'
import { imageOf } from '#lib/render/image.ts'
import { ENDPOINT_MAP, NODE, type Endpoint } from '#lib/render/input.ts'
import { keepSelector } from '#lib/render/kept-selector.ts'
import { renderInstallation } from '#lib/render/render.ts'
import { setFinalizer } from '../objects/finalizer.ts'
import { proxyRuns } from '../preflight/cluster-findings.ts'
import type { PreflightStep } from '../preflight/preflight.ts'
import { withoutFinding } from '../preflight/verdict.ts'
import { underLock } from '../status/datastore-lock.ts'
import { AFTER_PREFLIGHT, stateOf } from '../status/conditions.ts'
import { endpointOf, isObserved } from '../status/installation-status.ts'
import { rolloutState, type Cause, type ComponentState } from '#lib/control/rollout.ts'
import { kubeProxyOf } from './cluster-facts.ts'
import { readInstallation, type Asked } from './desired.ts'
import { endpointInUse, readEndpoint, type EndpointRead } from './endpoint.ts'
import { Gate, type Question } from './gate.ts'
import { MadeOnce } from './made-once.ts'
import type { Mode } from '#lib/kube/objects/node-network-status.ts'
import { Switch, type Look } from '../switch/switch.ts'
import { configurationOf, nodesWithAgents } from '../switch/observed.ts'
import { canaryText } from '../switch/services-state.ts'
import {
  isInstalled,
  make,
  otherAgents,
  ownAgents,
  placeOf,
  podsOf,
  withTroubles,
  workload,
  type Outcome,
  type StepOptions,
} from './outcome.ts'

export class Install {
  readonly #of: StepOptions
  readonly #gate: Gate
  readonly #once: MadeOnce
  readonly #switch: Switch
  /** what a watch may not tell of yet */
  #passed: { readonly uid: string | undefined; readonly state: ComponentState } | undefined

  constructor(of: StepOptions) {
    this.#of = of
    this.#gate = new Gate(of)
    this.#once = new MadeOnce(of)
    this.#switch = new Switch(of)
  }

  async step(installation: ApiObject, signal: AbortSignal): Promise<Outcome> {
    const { view, options, facts, client } = this.#of
    const isThere = isInstalled(installation, this.#of)
    let asked: Asked
    try {
      asked = readInstallation(
        installation,
        await facts.read({ installation, nodes: view.nodes.objects.values(), isInstalled: isThere, mode: modeIn(view), signal }),
      )
    } catch (thrown) {
      if (!(thrown instanceof FieldError)) throw thrown
      // Available is of the generation that it names, and of this one nothing is in place
      const cause = { reason: 'InstallationInvalid', message: thrown.message }
      return this.#refused(installation, cause, { unavailable: cause })
    }
    const other = otherAgents(this.#of)
    if (other !== undefined) return this.#refused(installation, other)
    await setFinalizer(client, { object: installation, present: true, signal })
    const read = readEndpoint(view.configMaps.objects.get(`${options.namespace}/${ENDPOINT_MAP}`))
    const known = { installation, asked, ...read }
    return isThere ? await this.#keep(known, signal) : await this.#begin(known, signal)
  }

  /** Nothing of ours is there yet but what looks at the nodes. */
  async #begin({ installation, asked, endpoint, wrong }: Known, signal: AbortSignal): Promise<Outcome> {
    const { computed } = asked
    if (wrong !== undefined) return { ...this.#refused(installation, wrong), computed }
    const { isPassed, state, objects } = await this.#gate.preflight({ asked, endpoint, installation }, signal)
    const { objects: place, wrong: secretsWrong } = placeOf(computed.imagePullSecrets, this.#of)
    if (isPassed) this.#passed = { uid: installation.metadata.uid, state }
    // agents come up in the mode that is asked for
    const isBegun = isPassed && (await this.#switch.begin(computed, signal))
    if (isBegun) await this.#makeAgents(asked, { endpoint, before: place }, signal)
    else await make([...place, ...objects], this.#of, signal)
    const waiting = { unavailable: AFTER_PREFLIGHT, progressing: AFTER_PREFLIGHT }
    const network = { ...waiting, ...(secretsWrong === undefined ? {} : { degraded: secretsWrong }) }
    const states = new Map<Component, ComponentState>([
      ['preflight', state],
      ['network', isBegun ? this.#network(secretsWrong) : withTroubles(this.#withTroubles(network), this.#switch.troubles)],
      ['services', { ...(isBegun ? TO_COME : waiting), ...this.#canaryNotes(computed) }],
      ...(isBegun ? [['controllers', this.#controllers()] as const] : []),
    ])
    return { computed, endpoint: isBegun ? endpoint : undefined, isInstalled: isBegun, states, isAgain: true }
  }

  async #keep({ installation, asked, endpoint, wrong }: Known, signal: AbortSignal): Promise<Outcome> {
    const agents = ownAgents(this.#of)
    // what the DaemonSet has may be another client's; a DaemonSet that is gone comes back with the endpoint that it had
    const used = endpointOf(installation) ?? (agents === undefined ? endpoint : endpointInUse(agents))
    const proof = await this.#gate.proveEndpoint({ installation, asked, endpoint, used }, signal)
    const { objects: place, wrong: secretsWrong } = placeOf(asked.computed.imagePullSecrets, this.#of)
    const { look, preflight } = await this.#lookAtSwitch({ installation, asked, endpoint: proof.endpoint }, signal)
    const before = [...place, ...proof.objects, ...(preflight?.objects ?? []), ...this.#switch.objects(look)]
    await this.#makeAgents(asked, { endpoint: proof.endpoint, before }, signal)
    await this.#switch.write(look, signal)
    const switched = this.#switch.states(look)
    const states = new Map<Component, ComponentState>([
      ['preflight', preflight?.state ?? this.#preflightPassed(installation, asked, switched.get('proxy'))],
      ['network', this.#network(wrong ?? proof.wrong ?? this.#silent(proof.endpoint) ?? secretsWrong)],
      ...switched,
      ['controllers', this.#controllers()],
    ])
    return {
      computed: asked.computed,
      endpoint: proof.endpoint,
      isInstalled: true,
      states,
      isAgain: proof.wrong !== undefined || !this.#isComplete || !this.#switch.isOver(look),
    }
  }

  /** What is to be switched, and what nodes say to it where that has not been asked. */
  async #lookAtSwitch(question: Question, signal: AbortSignal): Promise<{ readonly look: Look; readonly preflight?: PreflightStep }> {
    const { installation, asked } = question
    const look = await this.#switch.look({ installation, computed: asked.computed }, signal)
    // what stands of the generation before must not be taken for this one's
    if (!isObserved(installation)) await this.#of.tell(installation, this.#switch.states(look), signal)
    if (look.step.phase !== 'Preflight') {
      this.#gate.forgetSwitch()
      return { look }
    }
    const preflight = await this.#gate.switchPreflight(question, signal)
    if (!preflight.isPassed) return { look, preflight }
    this.#passed = { uid: installation.metadata.uid, state: preflight.state }
    return { look: this.#switch.afterPreflight(look), preflight }
  }

  /** Before there is a switch that tells them. */
  #canaryNotes({ canary, nodePods }: Asked['computed']): Pick<ComponentState, 'notes'> {
    const nodes = nodesWithAgents(this.#of.view.nodes.objects.values(), { ...nodePods.nodeSelector })
    const isThere = canary === undefined || nodes.some(({ metadata }) => metadata.name === canary)
    return isThere ? {} : { notes: [canaryText(canary)] }
  }

  async #makeAgents(asked: Asked, { endpoint, before }: AgentsInput, signal: AbortSignal): Promise<void> {
    const { options, version } = this.#of
    const namespace = options.systemNamespace
    // before the agents: these would take addresses of their nodes' podCIDRs, and the port of the platform's own tunnel
    await this.#once.make(asked, signal)
    const { computed } = asked
    const rendered = renderInstallation({ namespace, image: imageOf(computed, version), computed, endpoint })
    await make([...before, ...rendered.map((object) => keepSelector(object, workload(this.#of, object)))], this.#of, signal)
  }

  /** What is there stays as it is. `more`: of the network beside the cause. */
  #refused(installation: ApiObject, cause: Cause, more: ComponentState = {}): Outcome {
    const kept = (['preflight', 'services', 'proxy'] as const).flatMap((component) => {
      const before = this.#before(component)
      return before === undefined ? [] : [[component, before] as const]
    })
    const isThere = isInstalled(installation, this.#of)
    const states = new Map<Component, ComponentState>([
      ...kept,
      ['network', { ...this.#stopped(cause), ...more }],
      ...(isThere ? [['controllers', this.#controllers()] as const] : []),
    ])
    const keeps = new Set(kept.map(([component]) => component))
    return { computed: undefined, endpoint: endpointOf(installation), isInstalled: isThere, states, keeps, isAgain: false }
  }

  /** The warnings of a preflight that has passed stay to be read, but for what was done since. */
  #preflightPassed({ metadata: { uid } }: ApiObject, { computed }: Asked, proxy: ComponentState | undefined): ComponentState {
    const before = this.#passed?.uid === uid ? this.#passed?.state : this.#before('preflight')
    if (before === undefined || before.unavailable !== undefined) return INSTALLED
    const isBeside = proxy?.available === undefined || proxy.available.reason === 'BesideKubeProxy'
    return isBeside ? before : withoutFinding(before, proxyRuns(kubeProxyOf(computed.platform)))
  }

  /** What was told last of it stays to be read. */
  #before(component: Component): ComponentState | undefined {
    const found = this.#of.view.statuses.objects.get(`/${component}`)
    return found === undefined ? undefined : stateOf(found)
  }

  /** Nothing was tried, so it is not known what would be refused by now. */
  #stopped(cause: Cause): ComponentState {
    return { ...this.#network(undefined), degraded: cause }
  }

  /** What could not be written goes first: it may be what the other waits for. */
  #network(wrong: Cause | undefined): ComponentState {
    const state = underLock(this.#rollout('DaemonSet', NODE), this.#of.view.lock)
    return this.#withTroubles(wrong === undefined ? state : { ...state, degraded: wrong })
  }

  /** What agents ask at no longer answers. */
  #silent(used: Endpoint | undefined): Cause | undefined {
    const { endpoints, options } = this.#of
    endpoints.use(used)
    if (used === undefined || endpoints.silent === undefined) return undefined
    const remedy = `put the config map ${options.namespace}/${ENDPOINT_MAP} right: netplanectl install endpoint --apply`
    const message = `agents ask the API server at ${hostPort(used.host, Number(used.port))}, where it no longer answers the operator: ${endpoints.silent}; ${remedy}`
    return { reason: 'EndpointSilent', message }
  }

  #controllers(): ComponentState {
    return this.#rollout('Deployment', CONTROLLERS_NAME)
  }

  /** Of what is ours by this name. */
  #rollout(kind: 'DaemonSet' | 'Deployment', name: string): ComponentState {
    const { options, owned } = this.#of
    const place = `${options.systemNamespace}/${name}`
    const found = workload(this.#of, { kind, metadata: { name } })
    return rolloutState(found, podsOf(this.#of, name), owned.generationOf(`${kind} ${place}`))
  }

  get #isComplete(): boolean {
    return this.#of.owned.complete && this.#once.troubles.length === 0
  }

  #withTroubles(state: ComponentState): ComponentState {
    return withTroubles(state, [...this.#once.troubles, ...this.#of.owned.troubles])
  }
}

interface Known extends EndpointRead {
  readonly installation: ApiObject
  readonly asked: Asked
}

interface AgentsInput {
  /** that they are to use */
  readonly endpoint: Endpoint | undefined
  /** what there is to be before them */
  readonly before: readonly ApiObject[]
}

const COMING = { reason: 'WaitsForNodes', message: 'agents are to come' }
const TO_COME: ComponentState = { unavailable: COMING, progressing: COMING }

/** What agents do, where FelixConfiguration default says so. */
function modeIn({ felixConfigurations }: StepOptions['view']): Mode | undefined {
  const found = felixConfigurations.objects.get('/default')
  return found === undefined ? undefined : configurationOf(found).mode
}

const INSTALLED: ComponentState = { available: { reason: 'Installed', message: 'agents run, and each looks at its own node' } }
