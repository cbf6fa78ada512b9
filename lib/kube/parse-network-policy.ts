// SPDX-License-Identifier: Apache-2.0
/** Raw NetworkPolicy of networking.k8s.io → model. Layer: lib/kube. */
import { cidrContains, formatCidr, protocolNumber } from '../base/ip.ts'
import type { Cidr } from '../base/ip.ts'
import { NAMESPACE_PREFIX } from '../model/labels.ts'
import { ANYWHERE } from '../model/policy.ts'
import type { Policy, PortMatch, Rule, Side } from '../model/policy.ts'
import { and } from '../model/selector.ts'
import { asCidr, asRecord, each, FieldError, inside, only, port, protocol, text, under } from './fields.ts'
import type { ParseInput, Raw } from './fields.ts'
import { labelSelector } from './labels.ts'
import { ANY_PORT, crossed, inNamespace, isSaid, PODS, policyOf } from './policy-parts.ts'
import type { Direction, PortNeed } from './policy-parts.ts'

/** Among the policies of the default tier. */
const ORDER = 1000

export function parseNetworkPolicy(input: ParseInput): Policy {
  return inside(input.raw, 'spec', (spec) => kubernetesPolicy(input, spec, { kind: 'KubernetesNetworkPolicy', staged: undefined }))
}

/** `spec` as networking.k8s.io has it. */
export function kubernetesPolicy(input: ParseInput, spec: Raw, as: Pick<Policy, 'kind' | 'staged'>): Policy {
  // a field of another name may be a misspelt selector: without it the policy would close its whole namespace
  only(spec, as.staged === undefined ? FIELDS : [...FIELDS, 'stagedAction'])
  const subject = and(
    PODS,
    inNamespace(input.namespace),
    inside(spec, 'podSelector', (raw) => labelSelector(raw)),
  )
  const known = { ...as, namespace: input.namespace, name: input.name, tier: 'default', subject }
  return policyOf(input, known, {
    frame: () => ({ tier: known.tier, order: ORDER, scope: 'normal', directions: directionsOf(spec) }),
    rules: (direction) => rulesOf(spec, direction, input.namespace),
  })
}

const FIELDS = ['podSelector', 'policyTypes', 'ingress', 'egress']

function directionsOf(spec: Raw): readonly Direction[] {
  const types = each(spec, 'policyTypes', (value): Direction => {
    if (value === 'Ingress') return 'ingress'
    if (value === 'Egress') return 'egress'
    throw new FieldError('', 'must be Ingress or Egress')
  })
  if (types.length > 0) return types
  return isSaid(spec, 'egress') ? ['ingress', 'egress'] : ['ingress']
}

function rulesOf(spec: Raw, direction: Direction, namespace: string): readonly Rule[] {
  const peerKey = direction === 'ingress' ? 'from' : 'to'
  const rules = each(spec, direction, (value) => {
    const raw = only(asRecord(value), [peerKey, 'ports'])
    const peers = each(raw, peerKey, (peer) => peerOf(asRecord(peer), namespace))
    return { peers: peers.length === 0 ? [ANYWHERE] : peers, ports: portNeeds(raw) }
  })
  return rules.flatMap(({ peers, ports }, at) => crossed(at, { direction, peers, ports, rule: {} }))
}

function peerOf(raw: Raw, namespace: string): Side {
  only(raw, ['podSelector', 'namespaceSelector', 'ipBlock'])
  const [pods, namespaces, block] = [isSaid(raw, 'podSelector'), isSaid(raw, 'namespaceSelector'), isSaid(raw, 'ipBlock')]
  if (block) {
    if (pods || namespaces) throw new FieldError('ipBlock', 'must stand alone')
    return inside(raw, 'ipBlock', ipBlock)
  }
  if (!pods && !namespaces) throw new FieldError('', 'must have a podSelector, a namespaceSelector or an ipBlock')
  const where = namespaces
    ? inside(raw, 'namespaceSelector', (selector) => labelSelector(selector, NAMESPACE_PREFIX))
    : inNamespace(namespace)
  return {
    ...ANYWHERE,
    selector: and(
      PODS,
      where,
      inside(raw, 'podSelector', (selector) => labelSelector(selector)),
    ),
  }
}

function ipBlock(raw: Raw): Side {
  only(raw, ['cidr', 'except'])
  const cidr = under('cidr', () => asCidr(raw['cidr']))
  const except = each(raw, 'except', (value) => {
    const part = asCidr(value)
    if (!isInside(part, cidr)) throw new FieldError('', `must be inside ${formatCidr(cidr)}`)
    return part
  })
  return { ...ANYWHERE, nets: [cidr], notNets: except }
}

function isInside(part: Cidr, whole: Cidr): boolean {
  return part.bits > whole.bits && cidrContains(whole, part.addr)
}

/** Entries of one protocol together, each protocol once; none at all mean every packet. */
function portNeeds(raw: Raw): readonly PortNeed[] {
  const entries = each(raw, 'ports', (value) => portEntry(asRecord(value)))
  if (entries.length === 0) return [ANY_PORT]
  return [...new Set(entries.map((entry) => entry.protocol))].map((number) => {
    const ports = entries.filter((entry) => entry.protocol === number).map((entry) => entry.match)
    const some = ports.filter((match) => match !== undefined)
    return { protocols: [number], ports: some.length === ports.length ? some : undefined }
  })
}

/** Without a match: all ports of the protocol. */
function portEntry(raw: Raw): { readonly protocol: number; readonly match: PortMatch | undefined } {
  only(raw, ['protocol', 'port', 'endPort'])
  const number = protocolNumber(protocol(raw))
  const named = typeof raw['port'] === 'string'
  const from = named ? undefined : port(raw, 'port')
  const to = port(raw, 'endPort')
  if (to !== undefined && from === undefined) throw new FieldError('endPort', 'needs a port that is a number')
  if (to !== undefined && from !== undefined && to < from) throw new FieldError('endPort', 'must not be below port')
  if (named) return { protocol: number, match: { name: portName(raw) } }
  return { protocol: number, match: from === undefined ? undefined : { from, to: to ?? from } }
}

function portName(raw: Raw): string {
  const name = text(raw, 'port') ?? ''
  if (/^(?=.*[a-z])[a-z0-9]+(-[a-z0-9]+)*$/.test(name) && name.length <= 15) return name
  throw new FieldError('port', 'must be 1..65535 or the name of a port')
}
