// SPDX-License-Identifier: Apache-2.0
/** Raw ClusterNetworkPolicy of policy.networking.k8s.io/v1alpha2 → model. Layer: lib/kube. */
import type { Sliced } from '../../../base/async/slices.ts'
import { protocolNumber } from '../../../base/ip.ts'
import { DIRECTIONS } from '../../../model/policy.ts'
import type { Direction, Policy, PortMatch } from '../../../model/policy.ts'
import { adminRules, priorityOf, subjectOf } from './admin-rules.ts'
import type { RuleForm } from './admin-rules.ts'
import { asRecord, each, FieldError, inside, insideInSlices, oneOf, only, port, text } from '../fields.ts'
import type { ParseInput, Raw } from '../fields.ts'
import { ANY_PORT, isSaid, policyOf } from './common.ts'
import type { PortNeed } from './common.ts'

const FORM: RuleForm = {
  actions: { Accept: 'allow', Deny: 'deny', Pass: 'pass' },
  portsKey: 'protocols',
  portsOf: (raw) => (isSaid(raw, 'protocols') ? each(raw, 'protocols', (value) => protocolNeed(asRecord(value))) : [ANY_PORT]),
}

const FIELDS = ['tier', 'priority', 'subject', 'ingress', 'egress']
const TIERS = { Admin: 'adminnetworkpolicy', Baseline: 'baselineadminnetworkpolicy' } as const

export function parseClusterNetworkPolicy(input: ParseInput): Sliced<Policy> {
  return insideInSlices(input.raw, 'spec', (spec) => {
    const { name } = input
    const known = {
      kind: 'ClusterNetworkPolicy',
      namespace: '',
      name,
      tier: spec['tier'] === 'Baseline' ? TIERS.Baseline : TIERS.Admin,
      subject: subjectOf(spec),
      staged: undefined,
    } as const
    return policyOf(input, known, {
      frame: () => ({ tier: tierOf(only(spec, FIELDS)), order: priorityOf(spec), scope: 'normal', directions: saidDirections(spec) }),
      rules: (direction) => adminRules(input, spec, { direction, form: FORM }),
    })
  })
}

function tierOf(spec: Raw): string {
  const tier = oneOf(spec, 'tier', { words: ['Admin', 'Baseline'], absent: undefined })
  if (tier === undefined) throw new FieldError('tier', 'is missing')
  return TIERS[tier]
}

/** A direction without rules is none of the policy's business. */
export function saidDirections(spec: Raw): readonly Direction[] {
  return DIRECTIONS.filter((direction) => isSaid(spec, direction))
}

const PROTOCOLS = { tcp: 'TCP', udp: 'UDP', sctp: 'SCTP' } as const

/** A port's name brings its protocol with it. */
function protocolNeed(raw: Raw): PortNeed {
  only(raw, ['tcp', 'udp', 'sctp', 'destinationNamedPort'])
  const said = (['tcp', 'udp', 'sctp'] as const).filter((key) => isSaid(raw, key))
  const name = text(raw, 'destinationNamedPort') ?? ''
  const [key] = said
  if (said.length + Number(name !== '') !== 1) throw new FieldError('', 'must have one of tcp, udp, sctp and destinationNamedPort')
  if (key === undefined) return { protocols: undefined, ports: [{ name }] }
  const ports = inside(raw, key, (protocol) => {
    only(protocol, ['destinationPort'])
    return isSaid(protocol, 'destinationPort') ? [inside(protocol, 'destinationPort', portMatch)] : undefined
  })
  return { protocols: [protocolNumber(PROTOCOLS[key])], ports }
}

function portMatch(raw: Raw): PortMatch {
  only(raw, ['number', 'range'])
  const number = port(raw, 'number')
  if ((number === undefined) === !isSaid(raw, 'range')) throw new FieldError('', 'must have a number or a range')
  return number === undefined ? inside(raw, 'range', portRange) : { from: number, to: number }
}

/** Both ends are needed. */
export function portRange(raw: Raw): PortMatch {
  const [from, to] = [port(raw, 'start'), port(raw, 'end')]
  if (from === undefined) throw new FieldError('start', 'is missing')
  if (to === undefined) throw new FieldError('end', 'is missing')
  if (to < from) throw new FieldError('end', 'must not be below start')
  return { from, to }
}
