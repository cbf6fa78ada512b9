// SPDX-License-Identifier: Apache-2.0
/** The nodes of a truth table's states: each compiles policy for itself, and the steps of a case are changes to what
 * it has. Layer: test. */
import { PolicyCompiler } from '#agent/compile/policy/compiler.ts'
import { PolicyFeed } from '#agent/compile/policy/object-to-update.ts'
import type { PolicyStep } from '#agent/compile/policy/tables.ts'
import { refText } from '#lib/model/ref.ts'
import type { KubeObject } from '#lib/model/snapshot.ts'
import { Store } from '#lib/store/store.ts'
import { objectsIn } from './objects.ts'
import { storeOf } from './world.ts'
import type { State } from './world.ts'

/** Where a node's steps go. */
export interface StepTaker {
  take(steps: readonly PolicyStep[]): void
}

interface Node<T> {
  readonly feed: PolicyFeed
  readonly compiler: PolicyCompiler
  readonly taker: T
}

export class Nodes<T extends StepTaker> {
  readonly #store = new Store({ sources: ['state'] })
  readonly #nodes = new Map<string, Node<T>>()
  readonly #make: (name: string) => T

  constructor(make: (name: string) => T) {
    this.#make = make
  }

  /** Brings every node from whatever it has to this state. */
  load(state: State): void {
    const wanted = objectsIn(storeOf(state, (text) => console.error(`refused: ${text}`)).snapshot)
    this.#change(new Map([...wanted].map((object) => [refText(object), object])))
    for (const { node } of state.pods) if (!this.#nodes.has(node)) this.#nodes.set(node, this.#newNode(node))
  }

  /** Nothing is there any more. */
  empty(): void {
    this.#change(new Map())
  }

  at(name: string): T | undefined {
    return this.#nodes.get(name)?.taker
  }

  get all(): readonly T[] {
    return [...this.#nodes.values()].map(({ taker }) => taker)
  }

  #change(wanted: ReadonlyMap<string, KubeObject>): void {
    const gone = [...objectsIn(this.#store.snapshot)].filter((object) => !wanted.has(refText(object)))
    this.#store
      .sink('state')
      .apply([
        ...[...wanted.values()].map((object) => ({ kind: 'upsert' as const, object })),
        ...gone.map(({ kind, namespace, name }) => ({ kind: 'delete' as const, ref: { kind, namespace, name } })),
      ])
    const changes = this.#store.takeChanges()
    for (const { feed, compiler, taker } of this.#nodes.values()) taker.take(compiler.change(feed.changes(changes, this.#store.snapshot)))
  }

  #newNode(name: string): Node<T> {
    const node = { feed: new PolicyFeed(name), compiler: new PolicyCompiler(), taker: this.#make(name) }
    node.taker.take(node.compiler.change(node.feed.all(this.#store.snapshot)))
    return node
  }
}
