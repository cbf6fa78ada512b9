// SPDX-License-Identifier: Apache-2.0
/** Raw AdminNetworkPolicy and BaselineAdminNetworkPolicy of policy.networking.k8s.io/v1alpha1 → model.
 * Layer: lib/kube. */
import type { Sliced } from '../../../base/async/slices.ts'
import { protocolNumber } from '../../../base/ip.ts'
import type { Policy } from '../../../model/policy.ts'
import { adminRules, priorityOf, subjectOf } from './admin-rules.ts'
import type { RuleForm } from './admin-rules.ts'
import { asRecord, each, FieldError, inside, insideInSlices, only, port, protocol, text } from '../fields.ts'
import type { ParseInput, Raw } from '../fields.ts'
import { portRange, saidDirections } from './cluster-network-policy.ts'
import { ANY_PORT, isSaid, policyOf } from './common.ts'
import type { PortNeed } from './common.ts'

const PORTS = {
  portsKey: 'ports',
  portsOf: (raw: Raw) => (isSaid(raw, 'ports') ? each(raw, 'ports', (value) => portNeed(asRecord(value))) : [ANY_PORT]),
} as const

const ADMIN: RuleForm = { ...PORTS, actions: { Allow: 'allow', Deny: 'deny', Pass: 'pass' } }
const BASELINE: RuleForm = { ...PORTS, actions: { Allow: 'allow', Deny: 'deny' } }

export function parseAdminNetworkPolicy(input: ParseInput): Sliced<Policy> {
  const of = { kind: 'AdminNetworkPolicy', tier: 'adminnetworkpolicy', fields: ['priority'], form: ADMIN, order: priorityOf } as const
  return adminPolicy(input, of)
}

/** There is one, and it is asked last. */
export function parseBaselineAdminNetworkPolicy(input: ParseInput): Sliced<Policy> {
  if (input.name !== 'default') throw new FieldError('metadata.name', 'must be default')
  const order = (): number => Number.POSITIVE_INFINITY
  return adminPolicy(input, { kind: 'BaselineAdminNetworkPolicy', tier: 'baselineadminnetworkpolicy', fields: [], form: BASELINE, order })
}

interface AdminKind {
  readonly kind: Policy['kind']
  readonly tier: string
  /** besides those that both have */
  readonly fields: readonly string[]
  readonly form: RuleForm
  readonly order: (spec: Raw) => number
}

function adminPolicy(input: ParseInput, { kind, tier, fields, form, order }: AdminKind): Sliced<Policy> {
  return insideInSlices(input.raw, 'spec', (spec) => {
    const known = { kind, namespace: '', name: input.name, tier, subject: subjectOf(spec), staged: undefined }
    return policyOf(input, known, {
      frame: () => ({
        tier,
        order: order(only(spec, ['subject', 'ingress', 'egress', ...fields])),
        scope: 'normal',
        directions: saidDirections(spec),
      }),
      rules: (direction) => adminRules(input, spec, { direction, form }),
    })
  })
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
