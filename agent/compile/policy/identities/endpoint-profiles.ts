// SPDX-License-Identifier: Apache-2.0
/** Endpoints and network sets by what rules can tell of them: those with equal labels and ports are one thing.
 * Layer: agent/compile (pure). */
import type { Labels } from '#lib/model/labels.ts'
import type { NamedPort } from '#lib/model/policy.ts'
import { needsOf } from '#lib/model/selector/needs.ts'
import type { Matcher } from '#lib/model/selector/matcher.ts'
import type { Selector } from '#lib/model/selector/selector.ts'
import { portNumber } from '../policy-update.ts'
import { byIndex } from './identities.ts'
import { isTrueOf, portsOfName } from './predicates.ts'
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
  /** label → value → things */
  readonly #byLabel = new Map<string, Map<string, Set<EndpointProfile>>>()
  readonly #byPortName = new Map<string, Set<EndpointProfile>>()
  readonly #texts = new WeakMap<Labels, string>()
  /** names of ports of things that came or went */
  readonly #touchedNames = new Set<string>()

  /** The thing with these, made if need be; `atoms`: all that live. */
  take(of: Described, atoms: Iterable<LivePredicate>): EndpointProfile {
    const key = `${of.kind} ${this.#labelsText(of.labels)}\n${portsText(of.ports)}`
    const known = this.#all.get(key)
    if (known !== undefined) {
      known.users++
      return known
    }
    const thing: EndpointProfile = { ...of, key, users: 1, atoms: [] }
    for (const atom of atoms) if (isTrueOf(atom.atom.question, thing)) thing.atoms.push(atom)
    thing.atoms.sort(byIndex)
    this.#all.set(key, thing)
    for (const [label, value] of thing.labels) this.#labelled(label, value).add(thing)
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
    for (const [label, value] of thing.labels) {
      const things = this.#byLabel.get(label)?.get(value)
      things?.delete(thing)
      if (things?.size === 0) this.#byLabel.get(label)?.delete(value)
    }
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
      return byValue === undefined ? NONE : thingsAt(byValue, values)
    }
    return this.#all.values()
  }

  /** Ports of that name of endpoints that are found, each once, sorted. */
  portsNamed(name: string, isFound: Matcher): readonly ServicePort[] {
    const ports = new Map<number, ServicePort>()
    for (const thing of this.#byPortName.get(name) ?? NONE)
      if (isFound(thing.labels))
        for (const { protocol, port } of portsOfName(thing.ports, name)) ports.set(portNumber({ protocol, port }), { protocol, port })
    return [...ports].sort((a, b) => a[0] - b[0]).map(([, port]) => port)
  }

  /** Names of ports that may mean others than the last time this was asked. */
  takeTouchedNames(): ReadonlySet<string> {
    const touched = new Set(this.#touchedNames)
    this.#touchedNames.clear()
    return touched
  }

  #labelsText(labels: Labels): string {
    const known = this.#texts.get(labels)
    if (known !== undefined) return known
    const text = [...labels]
      .map(([label, value]) => `${label}=${value}`)
      .sort()
      .join(',')
    this.#texts.set(labels, text)
    return text
  }

  #labelled(label: string, value: string): Set<EndpointProfile> {
    const byValue = this.#byLabel.get(label) ?? new Map<string, Set<EndpointProfile>>()
    this.#byLabel.set(label, byValue)
    const things = byValue.get(value) ?? new Set()
    byValue.set(value, things)
    return things
  }

  #named(name: string): Set<EndpointProfile> {
    const things = this.#byPortName.get(name) ?? new Set()
    this.#byPortName.set(name, things)
    return things
  }
}

function* thingsAt(byValue: ReadonlyMap<string, ReadonlySet<EndpointProfile>>, values: ReadonlySet<string>): Iterable<EndpointProfile> {
  for (const value of values) yield* byValue.get(value) ?? NONE
}

/** Equal ports have equal texts, whatever their order. */
export function portsText(ports: readonly NamedPort[]): string {
  return ports
    .map(({ name, protocol, port }) => `${name}:${protocol}/${port}`)
    .sort()
    .join(',')
}
