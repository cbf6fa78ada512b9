// SPDX-License-Identifier: Apache-2.0
/** Something that is asked of every node: a DaemonSet, whose init containers answer. Layer: operator (pure). */
import type { ApiObject } from '#lib/api/resource.ts'
import { preflightResults, type PreflightResults } from '#lib/preflight/results.ts'
import { SILENT_MS, silentNodes } from '../status/silent-nodes.ts'

export interface NodeRunInput {
  /** what is asked; another text is another question, asked from the start */
  readonly question: string
  readonly pods: readonly ApiObject[]
  readonly nodes: readonly ApiObject[]
  /** ms that only grow */
  readonly now: number
  /** ms since 1970 */
  readonly wall: number
}

export interface NodeRunState {
  /** by which its pods are known */
  readonly run: string
  /** how often it was asked one after the other as nodes missed each other; 1 at first */
  readonly tries: number
  /** of nodes that are waited for, and of those that have answered */
  readonly results: PreflightResults
  /** nodes that have not answered, and whose kubelets are silent: nothing is waited for there any more */
  readonly silent: readonly string[]
  /** nodes that did not probe the tunnel at the same time as their peers, however often they were asked */
  readonly unknown: readonly string[]
  /** every node has answered, or is not waited for */
  readonly isOver: boolean
}

/** What has been found wrong may be put right meanwhile. A large cluster is asked less often: each time all its nodes
 * make a pod anew. */
export const AGAIN_MS = 20_000
const AGAIN_MS_PER_NODE = 50
/** Clocks of nodes that differ make peers seem apart each time. */
const TRIES_APART = 3

export class NodeRun {
  #asked: { readonly question: string; readonly id: string; readonly at: number; readonly tries: number } | undefined
  /** ms that only grow; undefined: nodes are still waited for */
  #againAt: number | undefined
  #wasApart = false

  step({ question, pods, nodes, now, wall }: NodeRunInput): NodeRunState {
    const isSame = this.#asked?.question === question
    const tries = isSame && this.#wasApart ? (this.#asked?.tries ?? 0) : 0
    if (this.#asked === undefined || !isSame || now >= (this.#againAt ?? Infinity)) {
      this.#asked = { question, id: new Date(wall).toISOString(), at: now, tries: tries + 1 }
      this.#againAt = undefined
    }
    const { id, at } = this.#asked
    const left = now - at < SILENT_MS ? new Set<string>() : silentNodes(nodes)
    const all = preflightResults(pods, nodes, id)
    const results = withoutSilent(all, left, new Set(nodes.map(({ metadata }) => metadata.name)))
    const silent = [...all.waiting, ...all.failed.keys()].filter((name) => left.has(name))
    const isAnswered = results.waiting.length === 0 && results.failed.size === 0
    const isLast = this.#asked.tries >= TRIES_APART
    const isApart = results.apart.size > 0 && !isLast
    this.#wasApart = isApart
    // those that only missed each other wait for none to put something right
    if (isAnswered) this.#againAt ??= now + (isApart ? 0 : AGAIN_MS + nodes.length * AGAIN_MS_PER_NODE)
    return {
      run: id,
      tries: this.#asked.tries,
      results: isLast ? { ...results, apart: new Map() } : results,
      silent,
      unknown: isLast ? [...results.apart.keys()] : [],
      isOver: isAnswered && !isApart,
    }
  }
}

/** Of a node that is silent or gone nothing is expected, neither by us nor by its peers. */
function withoutSilent(results: PreflightResults, silent: ReadonlySet<string>, nodes: ReadonlySet<string>): PreflightResults {
  const expected = (name: string): boolean => nodes.has(name) && !silent.has(name)
  const apart = [...results.apart].map(([name, peers]) => [name, peers.filter(expected)] as const)
  return {
    ...results,
    waiting: results.waiting.filter(expected),
    failed: new Map([...results.failed].filter(([name]) => expected(name))),
    apart: new Map(apart.filter(([name, peers]) => expected(name) && peers.length > 0)),
  }
}
