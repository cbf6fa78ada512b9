// SPDX-License-Identifier: Apache-2.0
/** Changes of objects → changes of the wanted data plane. Layer: agent/compile (pure).
 *
 * What one object contributes is a function of the snapshot alone; the compiler only remembers who holds contested keys and what it said
 * last about the node, so the work of a change is in proportion to the change. */
import type { Addr } from '#lib/base/ip.ts'
import { sortedEntries } from '#lib/base/order.ts'
import type { Rejected } from '#lib/base/result.ts'
import { same } from '#lib/base/same.ts'
import { nodeAddress } from '#lib/model/node.ts'
import { nameKey } from '#lib/model/ref.ts'
import type { Kind } from '#lib/model/ref.ts'
import type { ObjectChange, Snapshot } from '#lib/model/snapshot.ts'
import { isLocalWorkload, otherNodeAddrs, podAddrs, selfAddrs } from './addresses.ts'
import { Claims } from './claims.ts'
import type { DesiredChange, DesiredNode, Fragment, Row } from './desired.ts'
import { compileNode } from './node.ts'
import { claimKey, claimRank, contestedText, isContested } from './rows.ts'
import type { ContestedRow } from './rows.ts'
import { compileService } from './services.ts'
import type { CompileSettings } from './settings.ts'

export interface CompileInput {
  readonly snapshot: Snapshot
  readonly settings: CompileSettings
  /** addresses that interfaces of this node have, besides those its Node object names */
  readonly selfAddresses: readonly Addr[]
}

/** What one object wants, before it is known who holds contested keys. A later `rank` gives way among equals. */
interface Draft {
  readonly rows: readonly Row[]
  readonly rank: number
}

const NOTHING: Draft = { rows: [], rank: 0 }

export class Compiler {
  readonly #node: string
  #claims = new Claims()
  /** by owner: rows it wants and another has */
  #lost = new Map<string, readonly ContestedRow[]>()
  #last: { readonly input: CompileInput; readonly node: DesiredNode } | undefined

  /** `node` is this node's name */
  constructor(node: string) {
    this.#node = node
  }

  /** Everything anew. */
  compileAll(input: CompileInput): DesiredChange {
    this.#claims = new Claims()
    this.#lost = new Map()
    const fragments = this.#fragments(this.#allOwners(input.snapshot), input)
    const node = compileNode({ ...input, node: this.#node })
    this.#last = { input, node }
    return { fragments: fragments.filter((fragment) => fragment.rows.length > 0), node, complete: true }
  }

  /** What these changes, and other settings or addresses than last time, make different. The first time it is everything. */
  compileChanges(input: CompileInput, changes: readonly ObjectChange[]): DesiredChange {
    const last = this.#last
    if (last === undefined) return this.compileAll(input)
    const touched = this.#touched(changes, input.snapshot)
    const settingsChanged = !same(last.input.settings, input.settings)
    const selfChanged = !same(last.input.selfAddresses, input.selfAddresses)
    if (selfChanged) touched.owners.add(`Node/${this.#node}`)
    if (last.input.settings.interfacePrefix !== input.settings.interfacePrefix) {
      for (const pod of input.snapshot.podsOn(this.#node)) touched.owners.add(`Pod/${nameKey(pod)}`)
    }
    const fragments = this.#fragments(touched.owners, input)
    const node = touched.node || settingsChanged || selfChanged ? compileNode({ ...input, node: this.#node }) : last.node
    this.#last = { input, node }
    return { fragments, node: same(last.node, node) ? undefined : node, complete: false }
  }

  /** Every address or port that an object wants and another holds, at present. */
  conflicts(): readonly Rejected[] {
    return sortedEntries(this.#lost).flatMap(([owner, rows]) =>
      rows.map((row) => ({
        ref: owner,
        path: '',
        reason: `${contestedText(row)} already belongs to ${this.#claims.holder(claimKey(row)) ?? ''}`,
      })),
    )
  }

  #allOwners(snapshot: Snapshot): Set<string> {
    const owners = new Set<string>([`Node/${this.#node}`])
    for (const key of snapshot.services.keys()) owners.add(`Service/${key}`)
    for (const key of snapshot.nodes.keys()) owners.add(`Node/${key}`)
    for (const pod of snapshot.podsOn(this.#node)) owners.add(`Pod/${nameKey(pod)}`)
    return owners
  }

  #touched(changes: readonly ObjectChange[], snapshot: Snapshot): { readonly owners: Set<string>; readonly node: boolean } {
    const owners = new Set<string>()
    const movedNodes = new Set<string>()
    let node = false
    for (const change of changes) {
      for (const object of [change.before, change.after]) {
        if (object === undefined) continue
        if (object.kind === 'Service' || object.kind === 'Node') owners.add(ownerOf(object.kind, nameKey(object)))
        if (object.kind === 'EndpointSlice' && object.service !== undefined)
          owners.add(ownerOf('Service', `${object.namespace}/${object.service}`))
        if (object.kind === 'Pod' && object.nodeName === this.#node) owners.add(ownerOf('Pod', nameKey(object)))
        if (object.kind === 'Node' || (object.kind === 'Pod' && object.nodeName === this.#node)) node = true
      }
      if (change.kind === 'Node' && !sameAddresses(change)) movedNodes.add((change.after ?? change.before)?.name ?? '')
    }
    if (movedNodes.size > 0) for (const service of snapshot.servicesOn(movedNodes)) owners.add(ownerOf('Service', service))
    return { owners, node }
  }

  /** One fragment for each of these owners, and for those whom the outcome disturbs. */
  #fragments(owners: Iterable<string>, input: CompileInput): readonly Fragment[] {
    const fragments = new Map<string, Fragment>()
    // a Set's iteration goes on to what is added meanwhile; an owner that is disturbed after its turn is taken out and added again
    const queue = new Set(owners)
    for (const owner of queue) {
      queue.delete(owner)
      const { fragment, disturbed } = this.#settle(owner, this.#draft(owner, input))
      fragments.set(owner, fragment)
      for (const other of disturbed) queue.add(other)
    }
    return [...fragments.values()]
  }

  #settle(owner: string, draft: Draft): { readonly fragment: Fragment; readonly disturbed: ReadonlySet<string> } {
    const contested = draft.rows.filter(isContested)
    const claims = contested.map((row) => ({ key: claimKey(row), rank: 2 * claimRank(row) + draft.rank }))
    const { lost, disturbed } = this.#claims.set(owner, claims)
    if (lost.size === 0) {
      this.#lost.delete(owner)
      return { fragment: { owner, rows: draft.rows }, disturbed }
    }
    this.#lost.set(
      owner,
      contested.filter((row) => lost.has(claimKey(row))),
    )
    return { fragment: { owner, rows: draft.rows.filter((row) => !isContested(row) || !lost.has(claimKey(row))) }, disturbed }
  }

  #draft(owner: string, input: CompileInput): Draft {
    const slash = owner.indexOf('/')
    const key = owner.slice(slash + 1)
    switch (owner.slice(0, slash)) {
      case 'Service':
        return this.#service(key, input.snapshot)
      case 'Pod':
        return this.#pod(key, input)
      default:
        return this.#nodeAddrs(key, input)
    }
  }

  #service(key: string, snapshot: Snapshot): Draft {
    const service = snapshot.services.get(key)
    if (service === undefined) return NOTHING
    const otherNode = (name: string, v4: boolean): Addr | undefined => {
      const node = name === this.#node ? undefined : snapshot.nodes.get(name)
      return node === undefined ? undefined : nodeAddress(node, v4)
    }
    return { rows: compileService(service, snapshot.slicesOf(key), { otherNode }), rank: 0 }
  }

  #pod(key: string, input: CompileInput): Draft {
    const pod = input.snapshot.pods.get(key)
    if (pod === undefined || !isLocalWorkload(pod, this.#node)) return NOTHING
    // the address of a pod that is going may have been given to another one already
    return { rows: podAddrs(pod, input.settings.interfacePrefix), rank: pod.terminating ? 1 : 0 }
  }

  #nodeAddrs(name: string, input: CompileInput): Draft {
    const node = input.snapshot.nodes.get(name)
    if (name === this.#node) return { rows: selfAddrs(node, input.selfAddresses), rank: 0 }
    return node === undefined ? NOTHING : { rows: otherNodeAddrs(node), rank: 0 }
  }
}

function ownerOf(kind: Kind, key: string): string {
  return `${kind}/${key}`
}

/** Whether the addresses that backends on this node are reached by are the same as before. */
function sameAddresses(change: Extract<ObjectChange, { readonly kind: 'Node' }>): boolean {
  const of = (v4: boolean, node: typeof change.before): Addr | undefined => (node === undefined ? undefined : nodeAddress(node, v4))
  return [true, false].every((v4) => of(v4, change.before) === of(v4, change.after))
}
