// SPDX-License-Identifier: Apache-2.0
/** Endpoints and network sets, the things they are, and the groups in which local ones stand. Layer: agent/compile
 * (pure). */
import { inBatches, type Sliced } from '#lib/base/async/slices.ts'
import type { Addr, Cidr } from '#lib/base/ip.ts'
import type { Addresses } from '../identities/addresses.ts'
import type { Group } from '../rules/groups.ts'
import type { RuleList } from '../rules/rule-list.ts'
import type { LiveRuleset } from './rulesets.ts'
import type { EndpointProfile } from '../identities/endpoint-profiles.ts'
import type { LabelledPrefixes, PolicyEndpoint } from '../policy-update.ts'

/** By name of the slot, and `stagedName` of it; where there is none nothing is asked. */
export type GroupSets = ReadonlyMap<string, LiveRuleset>

export const NO_SETS: GroupSets = new Map()

/** By the same names. */
export type GroupLines = ReadonlyMap<string, RuleList>

export const NO_LINES: GroupLines = new Map()

/** Local endpoints that nothing tells apart but their addresses. */
export interface Members extends Group {
  readonly ends: Set<string>
  /** what its policies say */
  lines: GroupLines
  /** those of its lines, or others for want of room */
  sets: GroupSets
}

/** Without what is to be found out of it. */
export type NewGroup = Omit<Members, 'policies' | 'lines' | 'sets'>

interface Resident {
  readonly value: PolicyEndpoint
  readonly thing: EndpointProfile
  readonly group: Members | undefined
}

export class EndpointGroups {
  readonly groups = new Map<string, Members>()
  readonly #addresses: Addresses
  readonly #ends = new Map<string, Resident>()
  readonly #sets = new Map<string, { readonly thing: EndpointProfile; readonly nets: readonly Cidr[] }>()
  /** endpoints that went, or have other labels or addresses */
  #departed = 0
  /** groups that an endpoint has left */
  readonly #left = new Set<Members>()
  /** keys of local pods, sorted */
  readonly #localAt = new Map<Addr, readonly string[]>()

  constructor(addresses: Addresses) {
    this.#addresses = addresses
  }

  /** Whose sets count at the address; undefined where it is no local pod's. */
  groupAt(addr: Addr): Members | undefined {
    const [key] = this.#localAt.get(addr) ?? []
    return key === undefined ? undefined : this.#ends.get(key)?.group
  }

  /** A local host endpoint. */
  hostAt(key: string): { readonly value: PolicyEndpoint; readonly group: Members } | undefined {
    const { value, group } = this.#ends.get(key) ?? {}
    return value !== undefined && group?.kind === 'host' ? { value, group } : undefined
  }

  addrsOf(group: Members): Iterable<Addr> {
    return [...group.ends].flatMap((key) => this.#ends.get(key)?.value.addrs ?? [])
  }

  /** `newGroup` makes the group of a local endpoint that is the first of its kind. Returns addresses whose sets may
   * be others now. */
  *setEndpoint(key: string, value: PolicyEndpoint | undefined, newGroup: (group: NewGroup) => Sliced<Members>): Sliced<readonly Addr[]> {
    const before = this.#ends.get(key)
    const after = value === undefined ? undefined : yield* this.#settle(key, value, newGroup)
    if (after === undefined) this.#ends.delete(key)
    else this.#ends.set(key, after)
    if (before?.thing !== after?.thing || !sameAddrs(before?.value.addrs, after?.value.addrs)) {
      if (before !== undefined) this.#departed++
      yield* inBatches(after?.value.addrs ?? [], (addr) => {
        if (after !== undefined) this.#addresses.attach(addr, after.thing)
      })
      yield* inBatches(before?.value.addrs ?? [], (addr) => {
        if (before !== undefined) this.#addresses.detach(addr, before.thing)
      })
    }
    if (before !== undefined) {
      this.#addresses.things.release(before.thing)
      if (before.group !== undefined && before.group !== after?.group) {
        before.group.ends.delete(key)
        this.#left.add(before.group)
      }
    }
    return this.#localChanged(key, before, after)
  }

  /** How many endpoints went, or have other labels or addresses, since this was last asked. */
  takeDeparted(): number {
    const departed = this.#departed
    this.#departed = 0
    return departed
  }

  /** Groups without endpoints, each once. */
  takeEmptied(): readonly Members[] {
    const emptied = [...this.#left].filter(({ ends }) => ends.size === 0)
    this.#left.clear()
    return emptied
  }

  *setNets(key: string, value: LabelledPrefixes | undefined): Sliced<void> {
    const before = this.#sets.get(key)
    if (value === undefined) this.#sets.delete(key)
    else {
      const thing = yield* this.#addresses.things.take({ kind: 'set', labels: value.labels, ports: [] }, this.#addresses.identities.atoms)
      yield* inBatches(value.nets, (cidr) => {
        this.#addresses.attachNet(cidr, thing)
      })
      this.#sets.set(key, { thing, nets: value.nets })
    }
    if (before === undefined) return
    yield* inBatches(before.nets, (cidr) => {
      this.#addresses.detachNet(cidr, before.thing)
    })
    this.#addresses.things.release(before.thing)
  }

  *#settle(key: string, value: PolicyEndpoint, newGroup: (group: NewGroup) => Sliced<Members>): Sliced<Resident> {
    const { labels, ports, profiles } = value
    const kind = value.kind === 'node' ? 'node' : 'endpoint'
    const thing = yield* this.#addresses.things.take({ kind, labels, ports }, this.#addresses.identities.atoms)
    if (!value.local) return { value, thing, group: undefined }
    const groupKey = `${value.kind} ${thing.key}\n${profiles.join()}`
    const of = {
      key: groupKey,
      kind: value.kind === 'host' ? ('host' as const) : ('pod' as const),
      labels,
      ports,
      profiles,
      ends: new Set<string>(),
    }
    const group = this.groups.get(groupKey) ?? (yield* newGroup(of))
    this.groups.set(groupKey, group)
    group.ends.add(key)
    return { value, thing, group }
  }

  #localChanged(key: string, before: Resident | undefined, after: Resident | undefined): readonly Addr[] {
    const old = before?.group?.kind === 'pod' ? before.value.addrs : []
    const now = after?.group?.kind === 'pod' ? after.value.addrs : []
    for (const addr of old) if (!now.includes(addr)) this.#localAtChanged(addr, (keys) => keys.filter((other) => other !== key))
    for (const addr of now) if (!old.includes(addr)) this.#localAtChanged(addr, (keys) => [...keys, key].sort())
    return before?.group === after?.group && sameAddrs(old, now) ? [] : [...new Set([...old, ...now])]
  }

  #localAtChanged(addr: Addr, change: (keys: readonly string[]) => readonly string[]): void {
    const keys = change(this.#localAt.get(addr) ?? [])
    if (keys.length === 0) this.#localAt.delete(addr)
    else this.#localAt.set(addr, keys)
  }
}

function sameAddrs(a: readonly Addr[] | undefined, b: readonly Addr[] | undefined): boolean {
  return a !== undefined && b !== undefined && a.length === b.length && a.every((addr, at) => addr === b[at])
}
