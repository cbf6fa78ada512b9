// SPDX-License-Identifier: Apache-2.0
/** Raw NetworkPolicy of networking.k8s.io → model. Layer: lib/kube. */
import type { Sliced } from '../../../base/async/slices.ts'
import { protocolNumber } from '../../../base/ip.ts'
import { isObject } from '../../../base/object.ts'
import { ANYWHERE, DIRECTIONS } from '../../../model/policy.ts'
import type { Direction, Policy, PortMatch, Rule, Side } from '../../../model/policy.ts'
import { ALL, and } from '../../../model/selector/selector.ts'
import { asCidr, asRecord, each, insideInSlices, own, refuseUnder, under, usableAddressesInSlices } from '../fields.ts'
import type { ParseInput, Raw } from '../fields.ts'
import { kubernetesPolicyPeer, kubernetesPolicyRules } from '../../schema/network-policy.ts'
import type { Peer, PortEntry } from '../../schema/network-policy.ts'
import { ANY_PORT, crossed, inNamespace, isSaid, PODS, policyOf, rulesIn } from './common.ts'
import type { PortNeed } from './common.ts'
import { KUBERNETES_POLICY_SPEC, POLICY_SPECS } from '../../schema/v3-policies.ts'

/** Among the policies of the default tier. */
const ORDER = 1000

export function parseNetworkPolicy(input: ParseInput): Sliced<Policy> {
  return insideInSlices(input.raw, 'spec', (spec) => kubernetesPolicy(input, spec, { kind: 'KubernetesNetworkPolicy', staged: undefined }))
}

/** `spec` as networking.k8s.io has it. */
export function kubernetesPolicy(input: ParseInput, spec: Raw, as: Pick<Policy, 'kind' | 'staged'>): Sliced<Policy> {
  const shape = POLICY_SPECS.StagedKubernetesNetworkPolicy
  // a field of another name may be a misspelt selector: without it the policy would close its whole namespace
  const { only } = as.staged === undefined ? KUBERNETES_POLICY_SPEC : shape
  only(spec)
  const subject = and(PODS, inNamespace(input.namespace), shape.at(spec, 'podSelector') ?? ALL)
  const known = { ...as, namespace: input.namespace, name: input.name, tier: 'default', subject }
  return policyOf(input, known, {
    frame: () => ({ tier: known.tier, order: ORDER, scope: 'normal', directions: directionsOf(spec) }),
    rules: (direction) => rulesOf(spec, direction, input),
  })
}

function directionsOf(spec: Raw): readonly Direction[] {
  const types = POLICY_SPECS.StagedKubernetesNetworkPolicy.at(spec, 'policyTypes')
  if (types.length > 0) return types.map((type) => (type === 'Ingress' ? 'ingress' : 'egress'))
  return isSaid(spec, 'egress') ? DIRECTIONS : ['ingress']
}

function rulesOf(spec: Raw, direction: Direction, input: ParseInput): Sliced<readonly Rule[]> {
  const peerKey = direction === 'ingress' ? 'from' : 'to'
  return rulesIn(spec, direction, function* (value, at) {
    const raw = kubernetesPolicyRules[direction].only(asRecord(value))
    // a peer whose addresses cannot be read allows nothing
    const refuse = refuseUnder(input, `spec.${direction}[${at}]`)
    const peers = yield* usableAddressesInSlices(raw, peerKey, { read: readPeer, refuse })
    const ports = kubernetesPolicyRules.ingress.at(raw, 'ports')
    const hasNoneLeft = peers.length === 0 && isSaid(raw, peerKey)
    const sides = peers.length === 0 ? [ANYWHERE] : peers.values().map((peer) => peerOf(peer, input.namespace))
    return hasNoneLeft ? [] : yield* crossed(at, { direction, peers: sides, ports: portNeeds(ports), rule: {} })
  })
}

/** Where an address of it is bad, that is said first: then nothing else of the peer matters. */
function readPeer(value: unknown): Peer {
  try {
    return kubernetesPolicyPeer.read(value)
  } catch (thrown) {
    readBlock(value)
    throw thrown
  }
}

/** Throws FieldError where an address of the peer cannot be read. */
function readBlock(peer: unknown): void {
  const block = isObject(peer) ? own(peer, 'ipBlock') : undefined
  if (!isObject(block)) return
  under('ipBlock', () => {
    if (typeof block['cidr'] === 'string') under('cidr', () => asCidr(block['cidr']))
    if (Array.isArray(block['except'])) each(block, 'except', asCidr)
  })
}

function peerOf({ ipBlock, podSelector, namespaceSelector }: Peer, namespace: string): Side {
  if (ipBlock !== undefined) return { ...ANYWHERE, nets: [ipBlock.cidr], notNets: ipBlock.except }
  return { ...ANYWHERE, selector: and(PODS, namespaceSelector ?? inNamespace(namespace), podSelector ?? ALL) }
}

/** Entries of one protocol together, each protocol once; none at all mean every packet. */
function portNeeds(entries: readonly PortEntry[]): readonly PortNeed[] {
  if (entries.length === 0) return [ANY_PORT]
  return [...new Set(entries.map((entry) => entry.protocol))].map((protocol) => {
    const ports = entries.filter((entry) => entry.protocol === protocol).map(portMatch)
    const some = ports.filter((match) => match !== undefined)
    return { protocols: [protocolNumber(protocol)], ports: some.length === ports.length ? some : undefined }
  })
}

/** Undefined: all ports of the protocol. */
function portMatch({ port, endPort }: PortEntry): PortMatch | undefined {
  if (typeof port === 'string') return { name: port }
  return port === undefined ? undefined : { from: port, to: endPort ?? port }
}
