// SPDX-License-Identifier: Apache-2.0
/** A node whose tables follow a store, and what the evaluator says in the same words. Layer: test. */
import { PolicyCompiler } from '#agent/compile/policy/compiler.ts'
import { PolicyFeed } from '#agent/compile/policy/object-to-update.ts'
import type { Rows } from '#agent/compile/policy/rulesets/policy-quota.ts'
import type { PolicyStep } from '#agent/compile/policy/tables.ts'
import { judgeByTables, judgeHost, judgeUntracked } from '#agent/policy/judge.ts'
import type { HostPassing, Side } from '#agent/policy/judge.ts'
import { PolicyTables } from '#agent/policy/table-rows.ts'
import type { Addr } from '#lib/base/ip.ts'
import { deepEqual } from '#lib/base/deep-equal.ts'
import { refText } from '#lib/model/ref.ts'
import { hasOwnAddresses } from '#lib/model/pod.ts'
import type { Pod } from '#lib/model/pod.ts'
import type { Direction, HostEndpoint, Policy, Profile } from '#lib/model/policy.ts'
import type { KubeObject, Snapshot } from '#lib/model/snapshot.ts'
import { Evaluator } from '#lib/policy/evaluate.ts'
import type { Hit } from '#lib/policy/walk-rules.ts'
import { podProfiles } from '#lib/policy/rule-order.ts'
import type { Packet } from '#lib/policy/packet.ts'
import { Store } from '#lib/store/store.ts'

export class Follower {
  readonly store = new Store({ sources: ['test'] })
  readonly tables = new PolicyTables()
  readonly compiler: PolicyCompiler
  readonly node: string
  readonly #feed: PolicyFeed

  /** `sizes`: of its tables */
  constructor(node: string, sizes?: Rows) {
    this.node = node
    this.compiler = new PolicyCompiler(undefined, sizes)
    this.#feed = new PolicyFeed(node)
    this.store.sink('test').synced()
  }

  /** Objects that are new or different, and such as are no more; the steps are not taken yet. */
  change(put: readonly KubeObject[], gone: readonly KubeObject[] = []): readonly PolicyStep[] {
    this.store
      .sink('test')
      .apply([
        ...gone.map(({ kind, namespace, name }) => ({ kind: 'delete' as const, ref: { kind, namespace, name } })),
        ...put.map((object) => ({ kind: 'upsert' as const, object })),
      ])
    return this.compiler.change(this.#feed.changes(this.store.takeChanges(), this.store.snapshot))
  }

  put(objects: readonly KubeObject[], gone: readonly KubeObject[] = []): void {
    this.tables.apply(this.change(objects, gone))
  }

  /** of all pods of the cluster */
  get podAddrs(): ReadonlySet<Addr> {
    return new Set([...this.store.snapshot.pods.values()].flatMap(({ podIPs }) => podIPs))
  }

  /** "allow NetworkPolicy/x/a ingress 0", with what passed in front. */
  verdict(packet: Packet, side: Side): string {
    const { action, rule, passed } = judgeByTables(this.tables, packet, side)
    return (
      [...passed, ...(rule === undefined ? [] : [rule])].map((number) => this.compiler.ruleName(number) ?? `rule ${number}`).join(', ') +
      ` ${action}`
    )
  }

  /** Untracked, and after that. */
  hostActions(endpoint: HostEndpoint, passing: HostPassing): readonly string[] {
    const host = this.tables.host(refText(endpoint))
    if (host === undefined) return []
    return [judgeUntracked(this.tables, host, passing).action, judgeHost(this.tables, host, passing).action]
  }

  action(packet: Packet, side: Side): string {
    return judgeByTables(this.tables, packet, side).action
  }
}

/** The same by walking the policies. */
export class Oracle {
  readonly #snapshot: Snapshot
  readonly #evaluator: Evaluator
  readonly #node: string

  /** of the snapshot as it is now */
  constructor({ store, node }: Follower) {
    this.#snapshot = store.snapshot
    this.#evaluator = new Evaluator(store.snapshot)
    this.#node = node
  }

  verdict(packet: Packet, { direction, staged = false }: Side): string {
    const pod = this.#podAt(direction === 'ingress' ? packet.dst : packet.src)
    if (pod === undefined) return ' allow'
    const { action, hits } = this.#evaluator.pod(pod, packet, { direction, view: staged ? 'staged' : 'real' })
    const names = hits.flatMap((hit) => nameOf(hit, direction))
    // where no policy says otherwise and the namespace allows everything, no rule is asked
    const isOpen = hits.length === 1 && names[0] === `Profile/kns.${pod.namespace} ${direction} 0` && this.#allowsAll(pod, direction)
    return `${isOpen ? '' : names.join(', ')} ${action}`
  }

  hostActions(endpoint: HostEndpoint, { direction, staged = false, packet, before, ofHost }: HostPassing): readonly string[] {
    const of = { direction, view: staged ? ('staged' as const) : ('real' as const) }
    const { action, hits } = this.#evaluator.untracked(endpoint, packet, of)
    const untracked = hits.at(-1)?.kind === 'end' ? 'open' : action
    return [untracked, this.#evaluator.host(endpoint, { ...of, packet, before, ofHost }).action]
  }

  /** The first rule of the namespace's profile, written or for want of one. */
  #allowsAll(pod: Pod, direction: Direction): boolean {
    const [written, plain] = [this.#snapshot, { profiles: new Map<string, Profile>() }].map(
      (world) => podProfiles(world, pod, direction)[0]?.rules[0],
    )
    return deepEqual({ ...written, name: undefined }, plain)
  }

  #podAt(addr: Packet['src']): Pod | undefined {
    for (const pod of this.#snapshot.pods.values())
      if (hasOwnAddresses(pod) && pod.nodeName === this.#node && pod.podIPs.includes(addr)) return pod
    return undefined
  }
}

function nameOf(hit: Hit<Policy>, direction: string): readonly string[] {
  switch (hit.kind) {
    case 'rule':
      return [`${refText(hit.policy)} ${direction} ${hit.at}`]
    case 'profile':
      return [`Profile/${hit.profile} ${direction} ${hit.at}`]
    case 'tier-end':
      return hit.action === 'pass' ? [] : [`Tier/${hit.tier} ${direction} end`]
    case 'end':
      return [`no policy ${direction}`]
  }
}
