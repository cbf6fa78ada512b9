// SPDX-License-Identifier: Apache-2.0
/** Raw HostEndpoint → model. Layer: lib/kube. */
import { protocolNumber } from '../../base/ip.ts'
import { firstOfEachName } from '../../model/policy.ts'
import type { HostEndpoint } from '../../model/policy.ts'
import { asAddr, inside, refuseUnder, readWithoutBadAddresses } from './fields.ts'
import type { ParseInput } from './fields.ts'
import { labelsOf } from './labels.ts'
import { field, fieldOr, listed, object, required } from '../schema/shape.ts'
import { address, matching, name, port, text, word } from '../schema/primitives.ts'

const namedPort = object({
  name: required('What rules call it.', name),
  protocol: fieldOr('TCP', 'TCP when it is missing.', word('TCP', 'UDP', 'SCTP')),
  port: required('Its number.', port),
})

export const hostEndpointSpec = object(
  {
    node: required('Name of the node.', name),
    interfaceName: field(
      'Name of the interface; "*": all of the node.',
      matching(/^(\*|[^/\s]{1,15})?$/, 'must be the name of an interface, or "*"'),
    ),
    expectedIPs: listed('Addresses by which the interface is found where it has no name.', address, { most: 1024 }),
    profiles: listed('Profiles that hold where no policy decides.', text, { most: 64 }),
    ports: listed('Ports by the names that rules may use.', namedPort, { most: 1024 }),
  },
  {
    rules: [
      {
        path: 'interfaceName',
        reason: 'is missing, and so are expectedIPs',
        cel: "(has(self.interfaceName) && self.interfaceName != '') || (has(self.expectedIPs) && size(self.expectedIPs) > 0)",
        holds: ({ interfaceName = '', expectedIPs }) => interfaceName !== '' || expectedIPs.length > 0,
      },
    ],
  },
)

export function parseHostEndpoint(input: ParseInput): HostEndpoint {
  const { node, interfaceName, expectedIPs, profiles, ports } = inside(input.raw, 'spec', (spec) =>
    readWithoutBadAddresses(spec, 'expectedIPs', { read: asAddr, refuse: refuseUnder(input, 'spec'), whole: hostEndpointSpec.read }),
  )
  return {
    kind: 'HostEndpoint',
    namespace: '',
    name: input.name,
    node,
    labels: labelsOf(input),
    interfaceName: interfaceName === '' ? undefined : interfaceName,
    expectedIPs: [...new Set(expectedIPs)],
    profiles,
    ports: firstOfEachName(ports.map((said) => ({ ...said, protocol: protocolNumber(said.protocol) }))),
  }
}
