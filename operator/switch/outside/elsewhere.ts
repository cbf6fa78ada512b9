// SPDX-License-Identifier: Apache-2.0
/** Node ports of the operator's own node, asked by another node in its place. Layer: operator (pure).
 *
 * What the operator sends to its own node never leaves it. There is one question at a time. */
import type { ApiObject } from '#lib/api/resource.ts'
import { troubleCause } from '#lib/control/rollout.ts'
import type { NodeFound } from '../observed.ts'
import { askingAnswer, type AskingPod } from './asking-pod.ts'

export interface Question extends Pick<AskingPod, 'places' | 'patienceMs'> {
  /** another text is another question, with the same places as well */
  readonly about: string
  /** the operator's own */
  readonly node: string
  /** that is to ask; undefined: there is none */
  readonly from: string | undefined
}

/** `unheard`: it could not be asked from there. */
export type Heard =
  { readonly kind: 'waiting' } | { readonly kind: 'unheard' } | { readonly kind: 'answered'; readonly places: readonly string[] }

export interface Now {
  /** of all nodes */
  readonly nodes: readonly NodeFound[]
  /** of the pod that asks */
  readonly pods: readonly ApiObject[]
  /** ms that only grow */
  readonly now: number
  /** ms since 1970 */
  readonly wall: number
  /** for so long an answer is waited for */
  readonly mostMs: number
}

/** A question that has been answered so long ago is asked anew, where the answer is still to be used. */
const FRESH_MS = 60_000

type Awaited = Omit<AskingPod, 'namespace' | 'image' | 'computed'>

interface Asked {
  readonly text: string
  readonly run: string
  readonly at: number
  heard: Heard
}

export class Elsewhere {
  #asked: Asked | undefined
  #note: string | undefined
  #awaited: Awaited | undefined

  /** Why the node was last not asked from outside. */
  get note(): string | undefined {
    return this.#note
  }

  /** The pod that is waited for, since the last {@link rest}. */
  get awaited(): Awaited | undefined {
    return this.#awaited
  }

  /** No question is waited for any more. */
  rest(): void {
    this.#awaited = undefined
  }

  /** `isKept`: the answer stands however old it is. */
  hear(question: Question, isKept: boolean, now: Now): Heard {
    const { about, node, from, places, patienceMs } = question
    if (places.length === 0) {
      this.#note = undefined
      return { kind: 'answered', places }
    }
    const text = JSON.stringify([about, node, from, places])
    const isOld = !isKept && this.#asked?.heard.kind !== 'waiting' && now.now - (this.#asked?.at ?? 0) > FRESH_MS
    if (this.#asked?.text !== text || isOld)
      this.#asked = { text, run: new Date(now.wall).toISOString(), at: now.now, heard: { kind: 'waiting' } }
    const asked = this.#asked
    if (asked.heard.kind !== 'waiting') return asked.heard
    const answer = askingAnswer(now.pods, asked.run)
    const why = answer === undefined ? whyUnheard(question, now, asked.at) : undefined
    if (answer !== undefined) asked.heard = { kind: 'answered', places: places.filter((place) => answer.includes(place)) }
    else if (why !== undefined) asked.heard = { kind: 'unheard' }
    else if (from !== undefined) this.#awaited = { from, places, patienceMs, run: asked.run }
    this.#note = why === undefined ? undefined : `node ports of ${node} were asked by itself, and not from outside: ${why}`
    return asked.heard
  }
}

/** Undefined: it may still be heard. */
function whyUnheard({ from }: Question, { nodes, pods, now, mostMs }: Now, since: number): string | undefined {
  if (from === undefined) return 'no other node is ready'
  if (!nodes.some(({ name, isReady }) => name === from && isReady)) return `${from} is not ready`
  if (now - since < mostMs) return undefined
  const trouble = troubleCause(pods)
  return `a pod on ${from} has said nothing for ${mostMs / 1000} s${trouble === undefined ? '' : ` (${trouble.message})`}`
}

/** The node that asks in the place of the operator: one that is at work. */
export function otherNode(nodes: readonly NodeFound[]): string | undefined {
  const fit = nodes.filter(({ isOperators, isReady, status }) => !isOperators && isReady && status !== undefined)
  return (fit.find(({ isCordoned }) => !isCordoned) ?? fit[0])?.name
}
