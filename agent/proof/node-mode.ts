// SPDX-License-Identifier: Apache-2.0
/** In which mode this node serves, since when, and whether its services were found to be served. Layer: agent/proof. */
import { everyMs, type Clock } from '#lib/base/clock.ts'
import { errorText } from '#lib/base/errors.ts'
import type { DataplaneMode } from '#lib/model/node.ts'
import type { Log } from '#lib/obs/log.ts'
import type { Answer, PodSocket } from './ask.ts'
import { asksOfNode, asksOfPod, type Ask, type Place } from './asks.ts'
import { prove, type ProofClient, type Outcome } from './prove.ts'

/** Of what was asked, what was from a pod. */
export interface FromPod {
  readonly asked: number
  readonly answered: number
  /** why nothing was; undefined: there was a pod to ask from */
  readonly reason: string | undefined
}

export interface Proof extends Outcome {
  /** ms since 1970 */
  readonly at: number
  readonly fromPod: FromPod
}

export interface InMode {
  readonly mode: DataplaneMode
  /** ms since 1970 */
  readonly since: number
  /** undefined: not yet */
  readonly proof: Proof | undefined
}

/** A pod for as long as it is asked from. */
export interface PodClient extends AsyncDisposable {
  readonly socketOf: PodSocket
  /** some policy judges what it sends */
  readonly isRuled: boolean
}

export interface NodeModeOptions {
  readonly clock: Clock
  readonly log: Log
  /** that is wanted, once all is written that it means; undefined: not yet */
  readonly written: () => DataplaneMode | undefined
  readonly asks: () => readonly Ask[]
  /** of an ask by now */
  readonly endpointsOf: (ask: Ask) => readonly Place[]
  /** `socketOf`: of the pod that asks; undefined: the node does */
  readonly ask: (place: Place, how: Ask['how'], socketOf: PodSocket | undefined) => Promise<Answer | undefined>
  /** Rejects with the reason where no pod can be had. */
  readonly openPod: (signal: AbortSignal) => Promise<PodClient>
}

const TICK_MS = 200
/** What was not answered may be by now. */
const AGAIN_MS = 10_000
/** There may be an address for a pod by now. */
const POD_AGAIN_MS = 60_000
const NOTHING: Outcome = { asked: 0, answered: 0, failed: [], nodePorts: [], udpNodePorts: [] }

interface PodOutcome extends Outcome {
  readonly reason: string | undefined
}

export class NodeMode {
  readonly #options: NodeModeOptions
  #current: InMode | undefined
  /** ms since 1970: when a pod was last asked for */
  #podAt = 0

  constructor(options: NodeModeOptions) {
    this.#options = options
  }

  /** undefined: the node does not serve yet */
  get current(): InMode | undefined {
    return this.#current
  }

  async run(signal: AbortSignal): Promise<void> {
    await everyMs(this.#options.clock, { ms: TICK_MS, signal, run: () => this.tick(signal) })
  }

  /** Takes note of another mode, and asks services where that is due. */
  async tick(signal: AbortSignal): Promise<void> {
    const { clock, log, written } = this.#options
    const mode = written()
    if (mode === undefined) return
    if (mode !== this.#current?.mode) {
      this.#current = { mode, since: clock.wall(), proof: undefined }
      log.info({ mode }, 'mode.set')
    }
    const { proof } = this.#current
    if (proof === undefined || (proof.failed.length > 0 && clock.wall() >= proof.at + AGAIN_MS)) await this.#prove(this.#current, signal)
    else if (proof.failed.length === 0 && proof.fromPod.reason !== undefined && clock.wall() >= this.#podAt + POD_AGAIN_MS)
      await this.#addPod(this.#current, proof, signal)
  }

  /** By the node and a pod at once. */
  async #prove(before: InMode, signal: AbortSignal): Promise<void> {
    const { asks } = this.#options
    const asking = this.#askFromPod(signal)
    // the pod must not outlive this
    const node = await this.#ask(asksOfNode(asks()), undefined, signal).finally(() => asking)
    this.#conclude(before, node, await asking)
  }

  /** There was none when the node asked. */
  async #addPod(before: InMode, proof: Proof, signal: AbortSignal): Promise<void> {
    const pod = await this.#askFromPod(signal)
    if (pod.reason === undefined) this.#conclude(before, proof, pod)
  }

  /** Never rejects. */
  async #askFromPod(signal: AbortSignal): Promise<PodOutcome> {
    const { clock, asks, openPod } = this.#options
    this.#podAt = clock.wall()
    if (asks().length === 0) return { ...NOTHING, reason: undefined }
    try {
      await using pod = await openPod(signal)
      return { ...(await this.#ask(asksOfPod(asks(), pod), pod, signal)), reason: undefined }
    } catch (thrown) {
      return { ...NOTHING, reason: errorText(thrown) }
    }
  }

  async #ask(asks: readonly Ask[], pod: PodClient | undefined, signal: AbortSignal): Promise<Outcome> {
    const { clock, ask, endpointsOf } = this.#options
    const client: ProofClient = {
      ask: (place, how) => ask(place, how, pod?.socketOf),
      isPod: pod !== undefined,
      isRuled: pod?.isRuled ?? false,
    }
    return await prove(asks, { clock, client, endpointsOf, signal })
  }

  #conclude(before: InMode, node: Outcome, { asked, answered, failed, reason }: PodOutcome): void {
    const { clock, log, written } = this.#options
    // it would count for another mode; rows of the pod may still be written
    if ((written() ?? before.mode) !== before.mode) return
    const outcome = {
      asked: node.asked + asked,
      answered: node.answered + answered,
      failed: [...node.failed, ...failed],
      nodePorts: node.nodePorts,
      udpNodePorts: node.udpNodePorts,
    }
    const fromPod = { asked, answered, reason }
    this.#current = { ...before, proof: { ...outcome, fromPod, at: clock.wall() } }
    if (outcome.failed.length === 0) log.info({ mode: before.mode, answered: outcome.answered, fromPod }, 'mode.proven')
    else log.warn({ mode: before.mode, ...outcome, fromPod }, 'mode.unproven')
  }
}
