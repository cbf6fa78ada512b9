// SPDX-License-Identifier: Apache-2.0
/** A NetworkPolicy of Kubernetes as one of netplane.io/v3. Layer: lib/kube. */
import { formatCidr } from '../../base/ip.ts'
import { NAMESPACE_PREFIX } from '../../model/labels.ts'
import { ALL, and, mapLeaves, type Selector } from '../../model/selector/selector.ts'
import { formatSelector } from '../../model/selector/text.ts'
import { inside, only, type Raw } from '../parse/fields.ts'
import { PODS } from '../parse/policy/common.ts'
import type { Peer, PortEntry } from '../schema/network-policy.ts'
import { KUBERNETES_POLICY_SPEC } from '../schema/v3-policies.ts'
import { carriedMetadata } from './metadata.ts'

/** That of a policy of Kubernetes among those of the default tier. */
const ORDER = 1000

/** Throws FieldError for a field that cannot be carried. */
export function convertNetworkPolicy(raw: Raw): Raw {
  only(raw, ['apiVersion', 'kind', 'metadata', 'spec', 'status'])
  const spec = inside(raw, 'spec', KUBERNETES_POLICY_SPEC.read)
  const ingress = spec.ingress.flatMap(({ from, ports }) => crossed(from, ports).map(({ peer, ...rule }) => ruleOf(rule, peer, {})))
  const egress = spec.egress.flatMap(({ to, ports }) => crossed(to, ports).map(({ peer, ...rule }) => ruleOf(rule, {}, peer)))
  // a list of egress rules means both directions, also an empty one
  const usual = inside(raw, 'spec', (said) => ['Ingress', ...(said['egress'] === undefined ? [] : ['Egress'])])
  return {
    apiVersion: 'netplane.io/v3',
    kind: 'NetworkPolicy',
    metadata: carriedMetadata(raw),
    spec: {
      order: ORDER,
      selector: formatSelector(spec.podSelector ?? ALL),
      types: spec.policyTypes.length === 0 ? usual : spec.policyTypes,
      ...(ingress.length === 0 ? {} : { ingress }),
      ...(egress.length === 0 ? {} : { egress }),
    },
  }
}

interface Crossed {
  readonly peer: object
  readonly protocol?: string
  readonly ports?: readonly (number | string)[]
}

/** One for each peer and each protocol. */
function crossed(peers: readonly Peer[], entries: readonly PortEntry[]): readonly Crossed[] {
  const sides = peers.length === 0 ? [{}] : peers.map(sideOf)
  const needs = [...Map.groupBy(entries, ({ protocol }) => protocol)].map(([protocol, some]) => {
    const ports = some.flatMap((entry) => portOf(entry) ?? [])
    // an entry without a port means all of them
    return ports.length < some.length ? { protocol } : { protocol, ports }
  })
  return sides.flatMap((peer) => (needs.length === 0 ? [{ peer }] : needs.map((need) => ({ peer, ...need }))))
}

function portOf({ port, endPort }: PortEntry): number | string | undefined {
  return endPort === undefined ? port : `${port}:${endPort}`
}

function ruleOf({ protocol, ports }: Omit<Crossed, 'peer'>, source: object, peer: object): object {
  const destination = { ...peer, ...(ports === undefined ? {} : { ports }) }
  return {
    action: 'Allow',
    ...(protocol === undefined ? {} : { protocol }),
    ...(Object.keys(source).length === 0 ? {} : { source }),
    ...(Object.keys(destination).length === 0 ? {} : { destination }),
  }
}

/** A selector of Kubernetes means pods, where one of ours means sets of addresses as well. */
function sideOf({ ipBlock, podSelector, namespaceSelector }: Peer): object {
  if (ipBlock !== undefined) {
    const { cidr, except } = ipBlock
    return { nets: [formatCidr(cidr)], ...(except.length === 0 ? {} : { notNets: except.map(formatCidr) }) }
  }
  const selector = formatSelector(and(PODS, podSelector ?? ALL))
  return namespaceSelector === undefined ? { selector } : { selector, namespaceSelector: formatSelector(withoutPrefix(namespaceSelector)) }
}

/** The field itself says that the labels are a namespace's. */
function withoutPrefix(selector: Selector): Selector {
  return mapLeaves(selector, (leaf) => ('label' in leaf ? { ...leaf, label: leaf.label.slice(NAMESPACE_PREFIX.length) } : leaf))
}
