// SPDX-License-Identifier: Apache-2.0
/** The questions that rules ask of an address. Layer: agent/compile (pure). */
import { sha256Text } from '#lib/base/hash.ts'
import { compareText } from '#lib/base/order.ts'
import { formatCidr } from '#lib/base/ip.ts'
import type { Cidr } from '#lib/base/ip.ts'
import { formatSelector } from '#lib/model/selector/text.ts'
import { matcherOf, type Matcher } from '#lib/model/selector/matcher.ts'
import { selects } from '#lib/model/selector/selector.ts'
import type { Selector } from '#lib/model/selector/selector.ts'
import type { Labels } from '#lib/model/labels.ts'
import type { NamedPort } from '#lib/model/policy.ts'

export type Question =
  /** Is it an endpoint's, or in a network set, that the selector finds? */
  | { readonly kind: 'labels'; readonly selector: Selector }
  /** Is it a node's that the selector finds? */
  | { readonly kind: 'nodes'; readonly selector: Selector }
  /** Is it an endpoint's that the selector finds and whose port of that name is this one? */
  | { readonly kind: 'port'; readonly selector: Selector; readonly name: string; readonly protocol: number; readonly port: number }
  /** Is it within one of these prefixes? */
  | { readonly kind: 'nets'; readonly nets: readonly Cidr[] }
  /** Is it one of these services' endpoint, with this port where one is given? Keys are "namespace/name". */
  | { readonly kind: 'services'; readonly services: readonly string[]; readonly port: ServicePort | undefined }

export interface ServicePort {
  readonly protocol: number
  readonly port: number
}

/** A question with its text, by which equal ones are known. */
export interface Predicate {
  readonly key: string
  readonly question: Question
}

/** What a rule asks of an address: each of these answers. */
export interface Condition {
  readonly atom: Predicate
  readonly holds: boolean
}

/** `selector`: the key of the question's, where it is known already. */
export function predicateOf(question: Question, selector?: string): Predicate {
  return { key: keyOf(question, selector), question }
}

function keyOf(question: Question, selector?: string): string {
  switch (question.kind) {
    case 'labels':
    case 'nodes':
      return `${question.kind} ${selector ?? selectorKey(question.selector)}`
    case 'port':
      return `port ${question.name} ${question.protocol} ${question.port} ${selector ?? selectorKey(question.selector)}`
    case 'nets':
      return `nets ${shortened([...distinct(question.nets)].sort(compareText).join(' '))}`
    case 'services': {
      const { port } = question
      const services = shortened([...new Set(question.services)].sort(compareText).join(' '))
      return `services ${services} ${port === undefined ? '' : `${port.protocol} ${port.port}`}`
    }
  }
}

/** Equal selectors have equal keys. */
export function selectorKey(selector: Selector): string {
  return shortened(formatSelector(selector))
}

/** Keys are parts of the texts of all rules that ask, so that a long one would be written and read many times. */
const LONGEST_KEY = 512

/** The text itself, or what is as good as one: nobody finds two texts with the same hash. */
export function shortened(text: string): string {
  return text.length <= LONGEST_KEY ? text : `sha256 ${sha256Text(text)}`
}

/** One that is named twice is there once. */
export function distinct(nets: readonly Cidr[]): ReadonlySet<string> {
  return new Set(nets.map(formatCidr))
}

/** Whatever has an address or prefix and can be told by labels. */
export interface Described {
  readonly kind: 'endpoint' | 'node' | 'set'
  readonly labels: Labels
  /** none but of endpoints */
  readonly ports: readonly NamedPort[]
}

/** Is it true of its addresses, because of what it is? Prefixes and services are not about that. */
export function isTrueOf(question: Question, thing: Described): boolean {
  switch (question.kind) {
    case 'labels':
      return thing.kind !== 'node' && selects(question.selector, thing.labels)
    case 'nodes':
      return thing.kind === 'node' && selects(question.selector, thing.labels)
    case 'port':
      return hasPort(thing.ports, question) && selects(question.selector, thing.labels)
    default:
      return false
  }
}

/** The same, made ready to be asked of many. */
export function truthOf(question: Question): (thing: Described) => boolean {
  if (!('selector' in question)) return () => false
  const isFound = matcherFor(question.selector)
  if (question.kind === 'port') return ({ ports, labels }) => hasPort(ports, question) && isFound(labels)
  return ({ kind, labels }) => (kind === 'node') === (question.kind === 'nodes') && isFound(labels)
}

const matchers = new WeakMap<Selector, Matcher>()

/** One for all questions of a selector: a rule may ask for thousands of names of ports of the pods that it finds. */
function matcherFor(selector: Selector): Matcher {
  const known = matchers.get(selector) ?? matcherOf(selector)
  matchers.set(selector, known)
  return known
}

function hasPort(ports: readonly NamedPort[], { name, protocol, port }: { readonly name: string } & ServicePort): boolean {
  return portsOfName(ports, name).some((own) => own.protocol === protocol && own.port === port)
}

/** Of so many ports one is found as fast without an index. */
const FEW_PORTS = 16
const indexes = new WeakMap<readonly NamedPort[], ReadonlyMap<string, readonly NamedPort[]>>()

/** Those of one endpoint that have the name. A policy may ask for as many names as a pod has ports. */
export function portsOfName(ports: readonly NamedPort[], name: string): readonly NamedPort[] {
  return ports.length <= FEW_PORTS ? ports.filter((port) => port.name === name) : (portsByName(ports).get(name) ?? [])
}

/** Made once for a list, for each policy asks. */
export function portsByName(ports: readonly NamedPort[]): ReadonlyMap<string, readonly NamedPort[]> {
  const known = indexes.get(ports) ?? Map.groupBy(ports, (port) => port.name)
  indexes.set(ports, known)
  return known
}
