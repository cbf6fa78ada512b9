// SPDX-License-Identifier: Apache-2.0
/** Rules and selectors of the v1 API as those of netplane.io/v3. Layer: lib/kube. */
import { formatCidr } from '../../base/ip.ts'
import { NAMESPACE_LABEL, NAMESPACE_PREFIX } from '../../model/labels.ts'
import { and, equals, mapLeaves, or, type Selector } from '../../model/selector/selector.ts'
import { formatSelector } from '../../model/selector/text.ts'
import { asNet, asRecord, each, only, own, record, text, under, type Raw } from '../parse/fields.ts'
import { selector } from '../schema/v3-rules.ts'
import { saidOnly } from './metadata.ts'

const NEGATED = ['tag', 'net', 'nets', 'selector', 'ports'] as const
const SIDE = NEGATED.flatMap((name) => [name, negated(name)])
const RULE = ['action', 'ipVersion', 'protocol', 'icmp', 'notProtocol', 'notICMP', 'source', 'destination']

/** Undefined: there are none. Throws FieldError, as all of these do. */
export function convertRules(spec: Raw, direction: 'ingress' | 'egress'): readonly Raw[] | undefined {
  return own(spec, direction) === undefined ? undefined : each(spec, direction, (raw) => convertRule(only(asRecord(raw), RULE)))
}

function convertRule(rule: Raw): Raw {
  const { action } = rule
  const side = (name: string): Raw => under(name, () => convertSide(only(record(rule, name), SIDE)))
  return saidOnly({
    ...rule,
    action: action === 'next-tier' ? 'Pass' : action,
    source: side('source'),
    destination: side('destination'),
  })
}

function convertSide(side: Raw): Raw {
  return saidOnly({
    nets: nets(side, 'net'),
    notNets: nets(side, 'notNet'),
    // both must fit
    selector: joined(and, selectorsOf(side, 'selector', 'tag')),
    // neither may fit
    notSelector: joined(or, selectorsOf(side, 'notSelector', 'notTag')),
    ports: own(side, 'ports'),
    notPorts: own(side, 'notPorts'),
  })
}

function nets(side: Raw, name: 'net' | 'notNet'): readonly string[] {
  const one = own(side, name)
  const all = [...each(side, `${name}s`, asNet), ...(one === undefined ? [] : [under(name, () => asNet(one))])]
  return all.map(formatCidr)
}

function selectorsOf(side: Raw, name: string, tagName: string): readonly Selector[] {
  const tag = text(side, tagName)
  const said = readSelector(side, name)
  return [...(said === undefined ? [] : [said]), ...(tag === undefined ? [] : [equals(tag, '')])]
}

function joined(join: (...parts: readonly Selector[]) => Selector, parts: readonly Selector[]): string | undefined {
  return parts.length === 0 ? undefined : formatSelector(join(...parts))
}

/** Undefined: there is none. */
export function convertSelector(raw: Raw, name: string): string | undefined {
  const read = readSelector(raw, name)
  return read === undefined ? undefined : formatSelector(read)
}

function readSelector(raw: Raw, name: string): Selector | undefined {
  const value = own(raw, name)
  const read = value === undefined ? undefined : under(name, () => selector.read(value))
  return read && mapLeaves(read, (leaf) => ('label' in leaf ? { ...leaf, label: labelOf(leaf.label) } : leaf))
}

/** Labels of pods' namespaces had other names. */
function labelOf(label: string): string {
  return label === 'netplane/k8s_ns' ? NAMESPACE_LABEL : label.replace(/^k8s_ns\/label\//, NAMESPACE_PREFIX)
}

function negated(name: (typeof NEGATED)[number]): string {
  return `not${name.charAt(0).toUpperCase()}${name.slice(1)}`
}
