// SPDX-License-Identifier: Apache-2.0
/** Rules of netplane.io/v3 policies → model. Layer: lib/kube. */
import { isV4 } from '../base/ip.ts'
import { ANYWHERE } from '../model/policy.ts'
import type { Action, IcmpMatch, PortMatch, Rule, Side } from '../model/policy.ts'
import { asNet, asRecord, each, FieldError, inside, integer, oneOf, only, record, under } from './fields.ts'
import type { Raw } from './fields.ts'
import { isSaid, ruleOf } from './policy-parts.ts'
import type { Direction } from './policy-parts.ts'
import { peerSelector, selectorAt, serviceAt } from './v3-selectors.ts'

const ACTIONS: Readonly<Record<'Allow' | 'Deny' | 'Pass', Action>> = { Allow: 'allow', Deny: 'deny', Pass: 'pass' }
const FIELDS = ['action', 'ipVersion', 'protocol', 'notProtocol', 'icmp', 'notICMP', 'source', 'destination', 'metadata']

export interface RuleContext {
  readonly direction: Direction
  /** of the policy; empty: it is the whole cluster's */
  readonly namespace: string
  readonly refuse: (error: FieldError) => void
}

/** All rules of `direction`. Those that would log are left out, and said to be. */
export function v3Rules(spec: Raw, context: RuleContext): readonly Rule[] {
  const { direction, refuse } = context
  return each(spec, direction, (value) => ({ value })).flatMap(({ value }, at) =>
    under(`${direction}[${at}]`, () => {
      const raw = asRecord(value)
      const action = oneOf(raw, 'action', { words: ['Allow', 'Deny', 'Pass', 'Log'], absent: undefined })
      if (action === undefined) throw new FieldError('action', 'is missing')
      if (action !== 'Log') return [v3Rule(raw, { ...context, at, action: ACTIONS[action] })]
      refuse(new FieldError(`spec.${direction}[${at}].action`, 'Log is not supported in eBPF mode: the rule is left out'))
      return []
    }),
  )
}

function v3Rule(raw: Raw, context: RuleContext & { readonly at: number; readonly action: Action }): Rule {
  only(raw, FIELDS)
  const protocol = protocolAt(raw, 'protocol')
  const notProtocol = protocolAt(raw, 'notProtocol')
  const source = inside(raw, 'source', (side) => sideOf(side, 'source', context))
  const destination = inside(raw, 'destination', (side) => sideOf(side, 'destination', context))
  if (protocol === undefined || !PORTED.includes(protocol)) refusePorts(raw)
  const icmp = icmpAt(raw, 'icmp')
  if (icmp !== undefined && protocol !== ICMP && protocol !== ICMPV6) throw new FieldError('icmp', 'needs protocol ICMP or ICMPv6')
  return ruleOf(context.at, {
    action: context.action,
    ipVersion: ipVersionOf(raw, [source, destination]),
    protocols: protocol === undefined ? undefined : [protocol],
    notProtocols: notProtocol === undefined ? [] : [notProtocol],
    icmp,
    notIcmp: icmpAt(raw, 'notICMP'),
    source,
    destination,
  })
}

const ICMP = 1
const ICMPV6 = 58
const PORTED: readonly number[] = [6, 17, 132]
const NUMBERS: ReadonlyMap<string, number> = new Map([
  ['icmp', ICMP],
  ['tcp', 6],
  ['udp', 17],
  ['icmpv6', ICMPV6],
  ['sctp', 132],
  ['udplite', 136],
])

/** A name, in any case, or a number. */
function protocolAt(raw: Raw, key: string): number | undefined {
  const value = Object.hasOwn(raw, key) ? raw[key] : undefined
  if (value === undefined || value === null) return undefined
  const number = typeof value === 'string' ? (NUMBERS.get(value.toLowerCase()) ?? decimal(value)) : value
  if (typeof number === 'number' && Number.isInteger(number) && number >= 1 && number <= 255) return number
  throw new FieldError(key, 'must be TCP, UDP, ICMP, ICMPv6, SCTP, UDPLite or 1..255')
}

function decimal(text: string): number {
  return /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN
}

function refusePorts(raw: Raw): void {
  for (const side of ['source', 'destination'])
    for (const key of ['ports', 'notPorts'])
      if (isSaid(record(raw, side), key)) throw new FieldError(`${side}.${key}`, 'needs protocol TCP, UDP or SCTP')
}

function icmpAt(raw: Raw, key: string): IcmpMatch | undefined {
  if (!isSaid(raw, key)) return undefined
  return inside(raw, key, (fields) => {
    only(fields, ['type', 'code'])
    const [type, code] = [byteAt(fields, 'type'), byteAt(fields, 'code')]
    if (type === undefined && code !== undefined) throw new FieldError('code', 'needs a type')
    return type === undefined ? undefined : { type, code }
  })
}

function byteAt(raw: Raw, key: string): number | undefined {
  const value = integer(raw, key)
  if (value !== undefined && (value < 0 || value > 255)) throw new FieldError(key, 'must be 0..255')
  return value
}

/** Prefixes of one family make the rule one of that family: "all but 10.0.0.0/8" does not mean the whole of IPv6. */
function ipVersionOf(raw: Raw, sides: readonly Side[]): 4 | 6 | undefined {
  const families = new Set(sides.flatMap((side) => [...(side.nets ?? []), ...side.notNets]).map((net): 4 | 6 => (isV4(net.addr) ? 4 : 6)))
  if (families.size > 1) throw new FieldError('', 'must not have prefixes of both IPv4 and IPv6')
  const [implied] = families
  const said = integer(raw, 'ipVersion')
  if (said === undefined) return implied
  if (said !== 4 && said !== 6) throw new FieldError('ipVersion', 'must be 4 or 6')
  if (implied !== undefined && implied !== said) throw new FieldError('ipVersion', `must be ${implied}, as that of the prefixes is`)
  return said
}

const SIDE_FIELDS = ['nets', 'notNets', 'selector', 'notSelector', 'namespaceSelector', 'services', 'serviceAccounts', 'ports', 'notPorts']

function sideOf(raw: Raw, end: 'source' | 'destination', { direction, namespace }: RuleContext): Side {
  only(raw, SIDE_FIELDS)
  const nets = each(raw, 'nets', asNet)
  const ports = each(raw, 'ports', portMatch)
  const side: Side = {
    ...ANYWHERE,
    selector: peerSelector(raw, namespace),
    notSelector: selectorAt(raw, 'notSelector'),
    nets: nets.length === 0 ? undefined : nets,
    notNets: each(raw, 'notNets', asNet),
    ports: ports.length === 0 ? undefined : ports,
    notPorts: each(raw, 'notPorts', portMatch),
  }
  if (!isSaid(raw, 'services')) return side
  const beside = SIDE_FIELDS.find((key) => key !== 'services' && (end === 'destination' || !key.endsWith('orts')) && isSaid(raw, key))
  if (beside !== undefined) throw new FieldError(beside, 'must not stand beside services')
  if ((end === 'source') !== (direction === 'ingress')) throw new FieldError('services', `must not be the ${end} of an ${direction} rule`)
  return { ...side, services: [inside(raw, 'services', (service) => serviceAt(service, namespace))] }
}

/** 80, "8000:9000", or a name. */
function portMatch(value: unknown): PortMatch {
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 65_535) return { from: value, to: value }
  if (typeof value === 'string') {
    const [, first = '', last = first] = /^(\d{1,5})(?::(\d{1,5}))?$/.exec(value) ?? []
    const [from, to] = [Number(first), Number(last)]
    if (first !== '' && from <= to && to <= 65_535) return { from, to }
    if (first === '' && /^[a-zA-Z0-9_.-]{1,128}$/.test(value)) return { name: value }
  }
  throw new FieldError('', 'must be 0..65535, a range like 8000:9000, or the name of a port')
}

/** Rules without a policy around them, as profiles have them. */
export function v3RulesAlone(
  spec: Raw,
  refuse: (error: FieldError) => void,
): { readonly ingress: readonly Rule[]; readonly egress: readonly Rule[] } {
  return {
    ingress: v3Rules(spec, { direction: 'ingress', namespace: '', refuse }),
    egress: v3Rules(spec, { direction: 'egress', namespace: '', refuse }),
  }
}
