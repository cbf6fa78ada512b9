// SPDX-License-Identifier: Apache-2.0
/** All that rules of a world ask of an address, as one text: addresses of one text are alike to every rule.
 * Layer: upgrade (pure). */
import { depthOf, formatCidr, prefixKey, type Addr, type Cidr } from '#lib/base/ip.ts'
import { compareNumbers } from '#lib/base/order.ts'
import type { Labels } from '#lib/model/labels.ts'
import type { Policy, Profile, Rule, Side } from '#lib/model/policy.ts'
import { nameKey } from '#lib/model/ref.ts'
import { selects, type Selector } from '#lib/model/selector/selector.ts'
import type { PolicyWorld, Peers } from '#lib/policy/peers.ts'

export function rulesOf({ ingress = [], egress = [] }: Pick<Policy | Profile, 'ingress' | 'egress'>): readonly Rule[] {
  return [...ingress, ...egress]
}

/** Of policies and profiles. */
function sidesOf({ policies, profiles }: PolicyWorld): readonly Side[] {
  return [...policies.values(), ...profiles.values()].flatMap(rulesOf).flatMap(({ source, destination }) => [source, destination])
}

export class Matchers {
  readonly #world: PolicyWorld
  readonly #peers: Peers
  readonly #selectors: readonly Selector[]
  readonly #prefixes = new PrefixLists()
  readonly #services: readonly string[]
  readonly #known = new WeakMap<Labels, string>()

  constructor(world: PolicyWorld, peers: Peers) {
    this.#world = world
    this.#peers = peers
    const sides = sidesOf(world)
    const subjects = [...world.policies.values()].map(({ subject }) => subject)
    const selectors = [...subjects, ...sides.flatMap(({ selector, notSelector, nodes }) => [selector, notSelector, nodes])]
    this.#selectors = [...new Map(selectors.flatMap((one) => (one === undefined ? [] : [[JSON.stringify(one), one] as const]))).values()]
    this.#services = [...new Set(sides.flatMap(({ services = [] }) => services.map(nameKey)))]
    for (const { nets, notNets } of sides) for (const list of [nets, notNets]) this.#prefixes.add(list ?? [])
    for (const { nets } of world.networkSets.values()) this.#prefixes.add(nets)
  }

  /** That rules and network sets name. */
  prefixes(): readonly Cidr[] {
    return this.#prefixes.all()
  }

  /** What every selector says of an endpoint. */
  labels(labels: Labels): string {
    const known = this.#known.get(labels)
    if (known !== undefined) return known
    const text = this.#selectors.map((selector) => (selects(selector, labels) ? '1' : '0')).join('')
    this.#known.set(labels, text)
    return text
  }

  /** Of all that have it. */
  address(addr: Addr): string {
    const owners = [...this.#peers.labels(addr), ...this.#peers.nodes(addr)].map((labels) => this.labels(labels))
    const services = this.#services.flatMap((service) => {
      const slices = this.#world.allSlicesOf(service).filter(({ endpoints }) => endpoints.some((one) => one.addr === addr))
      return slices.length === 0 ? [] : [`${service} ${JSON.stringify(slices.map(({ ports }) => ports))}`]
    })
    return [...owners.sort(), this.#prefixes.listsWith(addr), ...services].join(' ')
  }
}

/** Lists of prefixes, each once, and which of them have an address. */
class PrefixLists {
  readonly #lists = new Map<string, number>()
  readonly #byPrefix = new Map<string, { readonly cidr: Cidr; readonly lists: number[] }>()
  readonly #lengths = new Set<number>()

  add(list: readonly Cidr[]): void {
    const text = list.map(formatCidr).join()
    if (text === '' || this.#lists.has(text)) return
    const number = this.#lists.size
    this.#lists.set(text, number)
    for (const cidr of list) {
      const key = prefixKey(cidr.addr, depthOf(cidr))
      const known = this.#byPrefix.get(key) ?? { cidr, lists: [] }
      known.lists.push(number)
      this.#byPrefix.set(key, known)
      this.#lengths.add(depthOf(cidr))
    }
  }

  all(): readonly Cidr[] {
    return [...this.#byPrefix.values()].map(({ cidr }) => cidr)
  }

  listsWith(addr: Addr): string {
    const found = [...this.#lengths].flatMap((length) => this.#byPrefix.get(prefixKey(addr, length))?.lists ?? [])
    return [...new Set(found)].sort(compareNumbers).join()
  }
}
