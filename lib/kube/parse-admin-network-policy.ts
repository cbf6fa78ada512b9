// SPDX-License-Identifier: Apache-2.0
/** Raw AdminNetworkPolicy and BaselineAdminNetworkPolicy of policy.networking.k8s.io/v1alpha1 → model. Layer: lib/kube. */
import { protocolNumber } from '../base/ip.ts'
import type { Policy } from '../model/policy.ts'
import { adminRules, priorityOf, subjectOf } from './admin-rules.ts'
import type { RuleForm } from './admin-rules.ts'
import { asRecord, each, FieldError, inside, only, port, protocol, text } from './fields.ts'
import type { ParseInput, Raw } from './fields.ts'
import { portRange, saidDirections } from './parse-cluster-network-policy.ts'
import { ANY_PORT, isSaid, policyOf } from './policy-parts.ts'
import type { PortNeed } from './policy-parts.ts'

const PORTS = {
  portsKey: 'ports',
  portsOf: (raw: Raw) => (isSaid(raw, 'ports') ? each(raw, 'ports', (value) => portNeed(asRecord(value))) : [ANY_PORT]),
} as const

const ADMIN: RuleForm = { ...PORTS, actions: { Allow: 'allow', Deny: 'deny', Pass: 'pass' } }
const BASELINE: RuleForm = { ...PORTS, actions: { Allow: 'allow', Deny: 'deny' } }

export function parseAdminNetworkPolicy(input: ParseInput): Policy {
  return inside(input.raw, 'spec', (spec) => {
    const frame = { ...frameOf(input, spec), kind: 'AdminNetworkPolicy' as const, tier: 'adminnetworkpolicy', order: priorityOf(spec) }
    return policyOf(input, frame, (direction) =>
      adminRules(input, only(spec, ['priority', 'subject', 'ingress', 'egress']), { direction, form: ADMIN }),
    )
  })
}

/** There is one, and it is asked last. */
export function parseBaselineAdminNetworkPolicy(input: ParseInput): Policy {
  if (input.name !== 'default') throw new FieldError('metadata.name', 'must be default')
  return inside(input.raw, 'spec', (spec) => {
    const frame = {
      ...frameOf(input, spec),
      kind: 'BaselineAdminNetworkPolicy' as const,
      tier: 'baselineadminnetworkpolicy',
      order: Number.POSITIVE_INFINITY,
    }
    return policyOf(input, frame, (direction) =>
      adminRules(input, only(spec, ['subject', 'ingress', 'egress']), { direction, form: BASELINE }),
    )
  })
}

function frameOf(input: ParseInput, spec: Raw) {
  return {
    namespace: '',
    name: input.name,
    subject: subjectOf(spec),
    directions: saidDirections(spec),
    staged: undefined,
    scope: 'normal' as const,
  }
}

function portNeed(raw: Raw): PortNeed {
  only(raw, ['portNumber', 'portRange', 'namedPort'])
  const said = ['portNumber', 'portRange', 'namedPort'].filter((key) => isSaid(raw, key))
  if (said.length !== 1) throw new FieldError('', 'must have one of portNumber, portRange and namedPort')
  switch (said[0]) {
    case 'portNumber':
      return inside(raw, 'portNumber', (value) => {
        const number = port(only(value, ['protocol', 'port']), 'port')
        if (number === undefined) throw new FieldError('port', 'is missing')
        return { protocols: [protocolNumber(protocol(value))], ports: [{ from: number, to: number }] }
      })
    case 'portRange':
      return inside(raw, 'portRange', (value) => ({
        protocols: [protocolNumber(protocol(only(value, ['protocol', 'start', 'end'])))],
        ports: [portRange(value)],
      }))
    default:
      return { protocols: undefined, ports: [{ name: text(raw, 'namedPort') ?? '' }] }
  }
}
