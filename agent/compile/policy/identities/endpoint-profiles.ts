// SPDX-License-Identifier: Apache-2.0
/** Endpoints and network sets by what rules can tell of them: those with equal own labels, equal inherited labels and
 * equal ports are one thing.
 * Layer: agent/compile (pure). */
import { inBatches, type Sliced } from '#lib/base/async/slices.ts'
import { LayeredLabels, type Labels } from '#lib/model/labels.ts'
import type { NamedPort } from '#lib/model/policy.ts'
import { needsOf } from '#lib/model/selector/needs.ts'
import type { Matcher } from '#lib/model/selector/matcher.ts'
import type { Selector } from '#lib/model/selector/selector.ts'
import { portNumber } from '../policy-update.ts'
import { byIndex } from './identities.ts'
import { isTrueOf, portsOfName, shortened } from './predicates.ts'
import type { Described, Question, ServicePort } from './predicates.ts'
import type { LivePredicate } from './identities.ts'

/** What an endpoint or set is to rules. */
export interface EndpointProfile extends Described {
  readonly key: string
  /** true of it, among those that live; ascending */
  atoms: LivePredicate[]
  users: number
}

const NONE: ReadonlySet<EndpointProfile> = new Set()

export class EndpointProfiles {
  readonly #all = new Map<string, EndpointProfile>()
  /** label → value → layers of labels that have it */
  readonly #byLabel = new Map<string, Map<string, Set<Labels>>>()
  /** by layer */
  readonly #things = new Map<Labels, Set<EndpointProfile>>()
  readonly #byPortName = new Map<string, Set<EndpointProfile>>()
  readonly #texts = new WeakMap<Labels, string>()
  /** names of ports of things that came or went */
  readonly #touchedNames = new Set<string>()

  /** Names of ports that may mean others than the last time this was asked. */
  takeTouchedNames(): ReadonlySet<string> {
    const touched = new Set(this.#touchedNames)
    this.#touchedNames.clear()
    return touched
  }

  /** The thing with these, made if need be; `atoms`: all that live. */
  *take(of: Described, atoms: Iterable<LivePredicate>): Sliced<EndpointProfile> {
    const key = [of.kind, ...layersOf(of.labels).map((layer) => this.#labelsText(layer)), portsText(of.ports)].join('\n')
    const known = this.#all.get(key)
    if (known !== undefined) {
      known.users++
      return known
    }
    const thing: EndpointProfile = { ...of, key, users: 1, atoms: [] }
    yield* inBatches(atoms, (atom) => {
      if (isTrueOf(atom.atom.question, thing)) thing.atoms.push(atom)
    })
    thing.atoms.sort(byIndex)
    this.#all.set(key, thing)
    for (const layer of layersOf(thing.labels)) this.#enter(layer, thing)
    for (const { name } of thing.ports) {
      this.#named(name).add(thing)
      this.#touchedNames.add(name)
    }
    return thing
  }

  /** True when that was its last user: it is no more. */
  release(thing: EndpointProfile): boolean {
    if (--thing.users > 0) return false
    this.#all.delete(thing.key)
    for (const layer of layersOf(thing.labels)) this.#takeOut(layer, thing)
    for (const { name } of thing.ports) {
      this.#byPortName.get(name)?.delete(thing)
      this.#touchedNames.add(name)
    }
    return true
  }

  /** Those that it may be true of, and perhaps others. */
  candidates(question: Question): Iterable<EndpointProfile> {
    switch (question.kind) {
      case 'labels':
      case 'nodes':
        return this.#labelledAs(question.selector)
      case 'port':
        return this.#byPortName.get(question.name) ?? NONE
      default:
        return NONE
    }
  }

  #labelledAs(selector: Selector): Iterable<EndpointProfile> {
    for (const [label, { absent, values }] of needsOf(selector)) {
      if (absent || values === undefined) continue
      const byValue = this.#byLabel.get(label)
      return byValue === undefined ? NONE : this.#thingsAt(byValue, values)
    }
    return this.#all.values()
  }

  /** Ports of that name of endpoints that are found, each once, sorted. */
  *portsNamed(name: string, isFound: Matcher): Sliced<readonly ServicePort[]> {
    const ports = new Map<number, ServicePort>()
    yield* inBatches(this.#byPortName.get(name) ?? NONE, (thing) => {
      if (isFound(thing.labels))
        for (const { protocol, port } of portsOfName(thing.ports, name)) ports.set(portNumber({ protocol, port }), { protocol, port })
    })
    return [...ports].sort((a, b) => a[0] - b[0]).map(([, port]) => port)
  }

  #labelsText(labels: Labels): string {
    const known = this.#texts.get(labels)
    if (known !== undefined) return known
    const text = shortened(
      [...labels]
        .map(([label, value]) => `${label}=${value}`)
        .sort()
        .join(','),
    )
    this.#texts.set(labels, text)
    return text
  }

  #enter(layer: Labels, thing: EndpointProfile): void {
    const known = this.#things.get(layer)
    if (known !== undefined) {
      known.add(thing)
      return
    }
    this.#things.set(layer, new Set([thing]))
    for (const [label, value] of layer) {
      const byValue = this.#byLabel.get(label) ?? new Map<string, Set<Labels>>()
      this.#byLabel.set(label, byValue)
      byValue.set(value, (byValue.get(value) ?? new Set()).add(layer))
    }
  }

  #takeOut(layer: Labels, thing: EndpointProfile): void {
    const things = this.#things.get(layer)
    things?.delete(thing)
    if (things?.size !== 0) return
    this.#things.delete(layer)
    for (const [label, value] of layer) {
      const byValue = this.#byLabel.get(label)
      byValue?.get(value)?.delete(layer)
      if (byValue?.get(value)?.size === 0) byValue.delete(value)
      if (byValue?.size === 0) this.#byLabel.delete(label)
    }
  }

  *#thingsAt(byValue: ReadonlyMap<string, ReadonlySet<Labels>>, values: ReadonlySet<string>): Iterable<EndpointProfile> {
    for (const value of values) for (const layer of byValue.get(value) ?? []) yield* this.#things.get(layer) ?? NONE
  }

  #named(name: string): Set<EndpointProfile> {
    const things = this.#byPortName.get(name) ?? new Set()
    this.#byPortName.set(name, things)
    return things
  }
}

/** Labels that many inherit are one layer of all of them. */
function layersOf(labels: Labels): readonly Labels[] {
  return labels instanceof LayeredLabels ? [labels.own, labels.inherited] : [labels]
}

/** Equal ports have equal texts, whatever their order. */
export function portsText(ports: readonly NamedPort[]): string {
  return ports
    .map(({ name, protocol, port }) => `${name}:${protocol}/${port}`)
    .sort()
    .join(',')
}
