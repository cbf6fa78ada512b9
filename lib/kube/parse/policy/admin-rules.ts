// SPDX-License-Identifier: Apache-2.0
/** What the policies of policy.networking.k8s.io have in common: subjects, peers, and rules that cannot be read.
 * Layer: lib/kube. */
import type { Sliced } from '../../../base/async/slices.ts'
import { NAMESPACE_LABEL, NAMESPACE_PREFIX } from '../../../model/labels.ts'
import { ANYWHERE, ruleOf } from '../../../model/policy.ts'
import type { Action, Direction, Rule, Side } from '../../../model/policy.ts'
import { and, has } from '../../../model/selector/selector.ts'
import type { Selector } from '../../../model/selector/selector.ts'
import { asCidr, asRecord, each, FieldError, inside, integer, only, refuseUnder, text, under, withoutBadAddresses } from '../fields.ts'
import type { ParseInput, Raw } from '../fields.ts'
import { labelSelector } from '../labels.ts'
import { crossed, isSaid, joinedNeeds, PODS, rulesIn } from './common.ts'
import type { PortNeed } from './common.ts'

/** How one version of the API writes a rule. */
export interface RuleForm {
  readonly actions: Readonly<Record<string, Action>>
  readonly portsKey: 'ports' | 'protocols'
  readonly portsOf: (raw: Raw) => readonly PortNeed[]
}

/** Pods by their namespace, or by both; exactly one of the two must be there. */
export function subjectOf(spec: Raw): Selector {
  return inside(spec, 'subject', (raw) => podsOf(only(raw, ['namespaces', 'pods'])) ?? missing('', 'must have namespaces or pods'))
}

function missing(path: string, reason: string): never {
  throw new FieldError(path, reason)
}

function podsOf(raw: Raw): Selector | undefined {
  const [namespaces, pods] = [isSaid(raw, 'namespaces'), isSaid(raw, 'pods')]
  if (namespaces && pods) throw new FieldError('pods', 'must not stand beside namespaces')
  if (namespaces) return inside(raw, 'namespaces', (selector) => and(PODS, inNamespaces(selector)))
  if (!pods) return undefined
  return inside(raw, 'pods', (both) =>
    and(
      PODS,
      inNamespaces(inside(only(both, ['namespaceSelector', 'podSelector']), 'namespaceSelector', (selector) => selector)),
      inside(both, 'podSelector', (selector) => labelSelector(selector)),
    ),
  )
}

function inNamespaces(selector: Raw): Selector {
  return and(has(NAMESPACE_LABEL), labelSelector(selector, NAMESPACE_PREFIX))
}

/** 0 .. 1000 */
export function priorityOf(spec: Raw): number {
  const priority = integer(spec, 'priority')
  if (priority === undefined) throw new FieldError('priority', 'is missing')
  if (priority < 0 || priority > 1000) throw new FieldError('priority', 'must be 0..1000')
  return priority
}

/** As the API asks of us, a rule with a peer that we do not know is none if it allows, and denies everything
 * otherwise. Of the networks that an allow names, only those that cannot be read are left out. */
export function adminRules(
  input: ParseInput,
  spec: Raw,
  of: { readonly direction: Direction; readonly form: RuleForm },
): Sliced<readonly Rule[]> {
  const { direction, form } = of
  const peerKey = direction === 'ingress' ? 'from' : 'to'
  return rulesIn(spec, direction, function* (value, at) {
    const raw = only(asRecord(value), ['name', 'action', peerKey, form.portsKey])
    const rule = { name: text(raw, 'name'), action: actionOf(raw, form) }
    const place = `spec.${direction}[${at}].${peerKey}`
    const peers = each(raw, peerKey, asRecord).map((peer, index) =>
      rule.action === 'allow'
        ? withoutBadAddresses(peer, 'networks', { read: asCidr, refuse: refuseUnder(input, `${place}[${index}]`) })
        : peer,
    )
    if (peers.length === 0) throw new FieldError(peerKey, 'must have at least one')
    const unknown = peers.findIndex((peer) => whyUnknown(peer, direction) !== undefined)
    if (unknown >= 0) {
      const reason = whyUnknown(peers[unknown] ?? {}, direction) ?? ''
      const effect = rule.action === 'allow' ? 'the rule allows nothing' : 'the rule denies everything'
      input.refuse(new FieldError(`${place}[${unknown}]`, `${reason}: ${effect}`))
      return rule.action === 'allow' ? [] : [ruleOf(at, { name: rule.name, action: 'deny' })]
    }
    const sides = peers.map((peer, index) => under(`${peerKey}[${index}]`, () => peerOf(peer)))
    const ports = joinedNeeds(form.portsOf(raw))
    if (ports.some(isNamed) && sides.some((side) => side.nets !== undefined || side.nodes !== undefined))
      throw new FieldError(form.portsKey, 'must not name a port: nodes and networks have no named ones')
    return yield* crossed(at, { direction, peers: sides, ports, rule })
  })
}

function actionOf(raw: Raw, { actions }: RuleForm): Action {
  const word = text(raw, 'action')
  const action = word === undefined || !Object.hasOwn(actions, word) ? undefined : actions[word]
  if (action === undefined) throw new FieldError('action', `must be ${Object.keys(actions).join(' or ')}`)
  return action
}

function isNamed({ ports = [] }: PortNeed): boolean {
  return ports.some((match) => 'name' in match)
}

const PEERS = { ingress: ['namespaces', 'pods'], egress: ['namespaces', 'pods', 'nodes', 'networks'] }

function whyUnknown(raw: Raw, direction: Direction): string | undefined {
  const said = Object.keys(raw).filter((key) => raw[key] !== null && raw[key] !== undefined)
  if (said.length === 0) return 'says nothing that is understood'
  const other = said.find((key) => !PEERS[direction].includes(key))
  return other === undefined ? undefined : `${other} is not supported`
}

function peerOf(raw: Raw): Side {
  if (Object.keys(raw).filter((key) => raw[key] !== null).length > 1) throw new FieldError('', 'must have one field')
  if (isSaid(raw, 'nodes')) return { ...ANYWHERE, nodes: inside(raw, 'nodes', (selector) => labelSelector(selector)) }
  if (Object.hasOwn(raw, 'networks')) return { ...ANYWHERE, nets: each(raw, 'networks', asCidr) }
  return { ...ANYWHERE, selector: podsOf(raw) ?? missing('', 'must have one field') }
}
