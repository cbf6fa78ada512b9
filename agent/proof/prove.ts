// SPDX-License-Identifier: Apache-2.0
/** Whether services are served, to this node's processes or to a pod, by asking them. Layer: agent/proof. */
import type { Clock } from '#lib/base/clock.ts'
import { keepsEndpoint } from './affinity.ts'
import type { Answer } from './ask.ts'
import { askText, isSamePlace, placeText, type Ask, type Place } from './asks.ts'

export interface Outcome {
  readonly asked: number
  readonly answered: number
  /** "Service shop/db, TCP 10.96.0.9:80: no answer, though its endpoints answer" */
  readonly failed: readonly string[]
  /** that answered over TCP: "192.0.2.1:30080" */
  readonly nodePorts: readonly string[]
  /** of name servers, that answered over UDP */
  readonly udpNodePorts: readonly string[]
}

/** What asks. */
export interface ProofClient {
  /** undefined: no answer in time */
  readonly ask: (place: Place, how: Ask['how']) => Promise<Answer | undefined>
  /** a pod, with an address of its own */
  readonly isPod: boolean
  /** rules of policies may keep it from some endpoints of a service */
  readonly isRuled: boolean
}

export interface ProveOptions {
  readonly clock: Clock
  readonly client: ProofClient
  /** that an ask has now: it may be others' by then than those it was made with */
  readonly endpointsOf: (ask: Ask) => readonly Place[]
  readonly signal: AbortSignal
}

/** An answer that comes within this time is one. */
const PATIENCE_MS = 5000
const AGAIN_MS = 250
/** So many endpoints are asked themselves. */
const ENDPOINTS = 3

type Found = 'answered' | 'silent' | 'moved' | 'not to blame'

/** What no endpoint answers either is not counted: the service is not to blame. Nor is it where rules may keep the
 * client from the endpoint that the service has chosen for it, and not from another. */
export async function prove(asks: readonly Ask[], options: ProveOptions): Promise<Outcome> {
  const found = await Promise.all(asks.map(async (ask) => ({ ask, found: await outcomeOf(ask, options) })))
  const counted = found.filter(({ found: one }) => one !== 'not to blame')
  const nodePorts = (how: Ask['how']): readonly string[] =>
    counted.flatMap(({ ask, found: one }) => (one === 'answered' && ask.isNodePort && ask.how === how ? [placeText(ask)] : []))
  return {
    asked: counted.length,
    answered: counted.filter(({ found: one }) => one === 'answered').length,
    failed: counted.flatMap(({ ask, found: one }) => (one === 'answered' ? [] : [failureText(ask, one, options.client)])),
    nodePorts: nodePorts('connect'),
    udpNodePorts: nodePorts('name'),
  }
}

function failureText(ask: Ask, found: Found, { isPod }: ProofClient): string {
  const why =
    found === 'moved'
      ? 'its affinity does not hold, a client was led from an endpoint to another'
      : ask.how === 'datagram'
        ? 'not led to an endpoint, though these are reached'
        : 'no answer, though its endpoints answer'
  return `${askText(ask)}${isPod ? ' from a pod' : ''}: ${why}`
}

async function outcomeOf(ask: Ask, options: ProveOptions): Promise<Found> {
  const { clock, signal } = options
  for (const until = clock.now() + PATIENCE_MS; clock.now() < until; await clock.sleep(AGAIN_MS, signal))
    if (await isServed(ask, options)) return await stays(ask, options)
  if (!(await doEndpointsAnswer(ask, options.client))) return 'not to blame'
  return (await isServed(ask, options)) ? await stays(ask, options) : 'silent'
}

async function stays(ask: Ask, options: ProveOptions): Promise<Found> {
  return (await keepsEndpoint(ask, options)) ? 'answered' : 'moved'
}

/** By an answer; of a datagram, which has none, by an endpoint that it is sent to. */
async function isServed(ask: Ask, { client, endpointsOf }: ProveOptions): Promise<boolean> {
  const answer = await client.ask(ask, ask.how)
  if (answer === undefined || ask.how !== 'datagram') return answer !== undefined
  const { endpoint } = answer
  return endpoint !== undefined && endpointsOf(ask).some((one) => isSamePlace(one, endpoint))
}

/** One of them, or where rules may tell them apart, each. */
async function doEndpointsAnswer({ endpoints, how }: Ask, { ask, isRuled }: ProofClient): Promise<boolean> {
  const answers = await Promise.all(endpoints.slice(0, ENDPOINTS).map((endpoint) => ask(endpoint, how)))
  const answered = answers.map((answer) => answer !== undefined)
  return isRuled ? answered.every(Boolean) : answered.some(Boolean)
}
