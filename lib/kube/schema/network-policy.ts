// SPDX-License-Identifier: Apache-2.0
/** Shape of the spec of a NetworkPolicy of networking.k8s.io. Layer: lib/kube. */
import { cidrContains } from '../../base/ip.ts'
import type { Cidr } from '../../base/ip.ts'
import { NAMESPACE_PREFIX } from '../../model/labels.ts'
import { FieldError, under } from '../parse/fields.ts'
import { labelSelectorShape } from '../parse/labels.ts'
import { field, fieldOr, listed, object, required } from './shape.ts'
import type { Shape, Values } from './shape.ts'
import { cidr, port, word } from './primitives.ts'

const portOrName: Shape<number | string> = {
  read: (value) => {
    if (typeof value === 'number') return under('', () => port.read(value))
    if (typeof value === 'string' && value.length <= 15 && /^(?=.*[a-z])[a-z0-9]+(-[a-z0-9]+)*$/.test(value)) return value
    throw new FieldError('', 'must be 1..65535 or the name of a port')
  },
  schema: {
    'x-kubernetes-int-or-string': true,
    maxLength: 15,
    minimum: 1,
    maximum: 65_535,
    pattern: '^([0-9]+-)*[0-9]*[a-z][a-z0-9]*(-[a-z0-9]+)*$',
  },
}

const portEntry = object(
  {
    protocol: fieldOr('TCP', 'TCP when it is missing.', word('TCP', 'UDP', 'SCTP')),
    port: field('A port, or the name of one; all of the protocol when it is missing.', portOrName),
    endPort: field('The last of a range that begins with port.', port),
  },
  {
    rules: [
      {
        path: 'endPort',
        reason: 'needs a port that is a number',
        cel: '!has(self.endPort) || (has(self.port) && type(self.port) == int)',
        holds: (entry) => entry.endPort === undefined || typeof entry.port === 'number',
      },
      {
        path: 'endPort',
        reason: 'must not be below port',
        cel: '!has(self.endPort) || !has(self.port) || type(self.port) != int || self.endPort >= self.port',
        holds: (entry) => entry.endPort === undefined || typeof entry.port !== 'number' || entry.endPort >= entry.port,
      },
    ],
  },
)

const block = object(
  {
    cidr: required('The prefix that it is in.', cidr),
    except: listed('Parts of it that it is not in.', cidr, { most: 16 }),
  },
  {
    rules: [
      {
        path: 'except',
        reason: 'must be inside cidr',
        cel: '!has(self.except) || self.except.all(e, cidr(self.cidr).containsCIDR(e) && cidr(self.cidr).prefixLength() < cidr(e).prefixLength())',
        holds: ({ cidr: whole, except }) => except.every((part) => isInside(part, whole)),
      },
    ],
  },
)

function isInside(part: Cidr, whole: Cidr): boolean {
  return part.bits > whole.bits && cidrContains(whole, part.addr)
}

export const kubernetesPolicyPeer = object(
  {
    podSelector: field('Labels of pods.', labelSelectorShape('')),
    namespaceSelector: field("Labels of their namespaces; the policy's own when it is missing.", labelSelectorShape(NAMESPACE_PREFIX)),
    ipBlock: field('Addresses; stands alone.', block),
  },
  {
    rules: [
      {
        path: 'ipBlock',
        reason: 'must stand alone',
        cel: '!has(self.ipBlock) || (!has(self.podSelector) && !has(self.namespaceSelector))',
        holds: (said) => said.ipBlock === undefined || (said.podSelector === undefined && said.namespaceSelector === undefined),
      },
      {
        path: '',
        reason: 'must have a podSelector, a namespaceSelector or an ipBlock',
        cel: 'has(self.ipBlock) || has(self.podSelector) || has(self.namespaceSelector)',
        holds: (said) => said.ipBlock !== undefined || said.podSelector !== undefined || said.namespaceSelector !== undefined,
      },
    ],
  },
)

const peers = listed('Who it is about; everybody when there is none.', kubernetesPolicyPeer, { most: 32 })
const ports = listed('Which ports; all when there is none.', portEntry, { most: 64 })
const ingressRule = object({ from: peers, ports })
const egressRule = object({ to: peers, ports })
export const kubernetesPolicyRules = { ingress: ingressRule, egress: egressRule } as const

export type PortEntry = Values<{ readonly ports: typeof ports }>['ports'][number]
export type Peer = Values<{ readonly peers: typeof peers }>['peers'][number]

export const kubernetesPolicySpec = {
  podSelector: field('The pods that it applies to; all of the namespace when it is empty.', labelSelectorShape('')),
  policyTypes: listed('Its directions.', word('Ingress', 'Egress'), { most: 2 }),
  ingress: listed('What may come in.', ingressRule, { most: 128 }),
  egress: listed('What may go out.', egressRule, { most: 128 }),
} as const
