// SPDX-License-Identifier: Apache-2.0
/** Raw HostEndpoint → model. Layer: lib/kube. */
import { protocolNumber } from '../base/ip.ts'
import type { HostEndpoint, NamedPort } from '../model/policy.ts'
import { asAddr, asRecord, each, FieldError, inside, only, port, protocol, text } from './fields.ts'
import type { ParseInput, Raw } from './fields.ts'
import { asText, labelsOf } from './labels.ts'

export function parseHostEndpoint(input: ParseInput): HostEndpoint {
  return inside(input.raw, 'spec', (raw) => {
    const spec = only(raw, ['node', 'interfaceName', 'expectedIPs', 'profiles', 'ports'])
    const node = text(spec, 'node') ?? ''
    const interfaceName = text(spec, 'interfaceName') ?? ''
    const expectedIPs = each(spec, 'expectedIPs', asAddr)
    if (node === '') throw new FieldError('node', 'is missing')
    if (interfaceName === '' && expectedIPs.length === 0) throw new FieldError('interfaceName', 'is missing, and so are expectedIPs')
    if (interfaceName !== '' && !/^(\*|[^/\s]{1,15})$/.test(interfaceName))
      throw new FieldError('interfaceName', 'must be the name of an interface, or "*"')
    return {
      kind: 'HostEndpoint',
      namespace: '',
      name: input.name,
      node,
      labels: labelsOf(input),
      interfaceName: interfaceName === '' ? undefined : interfaceName,
      expectedIPs,
      profiles: each(spec, 'profiles', asText),
      ports: each(spec, 'ports', (value) => namedPort(asRecord(value))),
    }
  })
}

function namedPort(raw: Raw): NamedPort {
  only(raw, ['name', 'protocol', 'port'])
  const name = text(raw, 'name') ?? ''
  const number = port(raw, 'port')
  if (name === '') throw new FieldError('name', 'is missing')
  if (number === undefined) throw new FieldError('port', 'is missing')
  return { name, protocol: protocolNumber(protocol(raw)), port: number }
}
