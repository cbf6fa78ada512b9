// SPDX-License-Identifier: Apache-2.0
/** Shapes of what policies and profiles of netplane.io/v3 are made of: rules and their two ends. Layer: lib/kube. */
import { ParseError } from '../../base/errors.ts'
import type { Constraint } from '../../base/schema.ts'
import type { PortMatch } from '../../model/policy.ts'
import { parseSelector } from '../../model/selector/text.ts'
import type { Selector } from '../../model/selector/selector.ts'
import { asText, FieldError } from '../parse/fields.ts'
import { field, listed, object, required } from './shape.ts'
import type { Field, Rule, Shape, Values } from './shape.ts'
import { integer, name, net, text, texts, word } from './primitives.ts'

/** Undefined when it is empty. That it can be parsed is not for a schema to say. */
export const selector: Shape<Selector | undefined> = {
  read: (value) => {
    const expression = asText(value)
    if (expression.trim() === '') return undefined
    try {
      return parseSelector(expression)
    } catch (thrown) {
      throw thrown instanceof ParseError ? new FieldError('', thrown.message) : thrown
    }
  },
  schema: { type: 'string', maxLength: 16_384, example: "app == 'web' && !has(legacy)" },
}

const ICMP = 1
const ICMPV6 = 58
const PORTED: readonly (number | undefined)[] = [6, 17, 132]
const NUMBERS: ReadonlyMap<string, number> = new Map([
  ['icmp', ICMP],
  ['tcp', 6],
  ['udp', 17],
  ['icmpv6', ICMPV6],
  ['sctp', 132],
  ['udplite', 136],
])

/** A name, in any case, or a number. */
const protocol: Shape<number> = {
  read: (value) => {
    const number = typeof value === 'string' ? (NUMBERS.get(value.toLowerCase()) ?? decimal(value)) : value
    if (typeof number === 'number' && Number.isInteger(number) && number >= 1 && number <= 255) return number
    throw new FieldError('', 'must be TCP, UDP, ICMP, ICMPv6, SCTP, UDPLite or 1..255')
  },
  schema: {
    'x-kubernetes-int-or-string': true,
    pattern: '^(TCP|UDP|ICMP|ICMPv6|SCTP|UDPLite|tcp|udp|icmp|icmpv6|sctp|udplite|[1-9][0-9]?|1[0-9]{2}|2[0-4][0-9]|25[0-5])$',
    minimum: 1,
    maximum: 255,
  },
}

function decimal(value: string): number {
  return /^\d{1,5}$/.test(value) ? Number(value) : Number.NaN
}

/** 80, "8000:9000", or a name. */
const portMatch: Shape<PortMatch> = {
  read: (value) => {
    if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 65_535) return { from: value, to: value }
    if (typeof value === 'string') {
      const [, first = '', last = first] = /^(\d{1,5})(?::(\d{1,5}))?$/.exec(value) ?? []
      const [from, to] = [Number(first), Number(last)]
      if (first !== '' && from <= to && to <= 65_535) return { from, to }
      if (first === '' && /^[a-zA-Z0-9_.-]{1,128}$/.test(value)) return { name: value }
    }
    throw new FieldError('', PORT_REASON)
  },
  schema: {
    'x-kubernetes-int-or-string': true,
    pattern: `^(${portPattern()}(:${portPattern()})?|[a-zA-Z0-9_.-]{0,127}[a-zA-Z_.-][a-zA-Z0-9_.-]{0,127})$`,
    maxLength: 128,
    minimum: 0,
    maximum: 65_535,
  },
}

const PORT_REASON = 'must be 0..65535, a range like 8000:9000, or the name of a port'

function portPattern(): string {
  return '([0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])'
}

const icmp = object(
  {
    type: field('Type of the message.', integer(0, 255)),
    code: field('Its code; any when it is missing.', integer(0, 255)),
  },
  {
    rules: [
      {
        path: 'code',
        reason: 'needs a type',
        cel: '!has(self.code) || has(self.type)',
        holds: ({ type, code }) => code === undefined || type !== undefined,
      },
    ],
  },
)

const serviceOfNamespaced = object({
  name: required('Name of the service.', name),
  namespace: field("Its namespace; the policy's own when it is missing.", name),
})
const serviceOfGlobal = object({ name: required('Name of the service.', name), namespace: required('Its namespace.', name) })
type ServiceShape = Shape<Values<{ readonly name: Field<string, never>; readonly namespace: Field<string> }>>

const serviceAccounts = object({
  names: listed('Names, of which it is one.', text, { most: 1024 }),
  selector: field('What labels of the service account are asked.', selector),
})

const SIDE = {
  nets: listed('Prefixes or addresses, in one of which it is. All of a rule are of one family.', net, { most: 4096 }),
  notNets: listed('Prefixes or addresses in none of which it is.', net, { most: 4096 }),
  selector: field('What labels of the endpoint or network set are asked.', selector),
  notSelector: field('What its labels must not be.', selector),
  namespaceSelector: field('What labels of its namespace are asked; global() is whatever is in none.', selector),
  serviceAccounts: field('Whose pods it is.', serviceAccounts),
  ports: listed('Its ports: numbers, ranges like 8000:9000, or names.', portMatch, { most: 1024 }),
  notPorts: listed('Ports that are not its.', portMatch, { most: 1024 }),
} as const

const PEER = ['nets', 'notNets', 'selector', 'notSelector', 'namespaceSelector', 'serviceAccounts'] as const

function withServices(service: ServiceShape) {
  const doc = 'The endpoints of a service: of an ingress rule its source, of an egress rule its destination.'
  return { ...SIDE, services: field(doc, service) } as const
}

type WithServices = Values<ReturnType<typeof withServices>>
export type SideValues = Values<typeof SIDE> & Partial<Pick<WithServices, 'services'>>

/** What must not stand beside services: their endpoints have ports of their own. */
function alone(keys: readonly (keyof typeof SIDE)[]): Rule<WithServices>[] {
  return keys.map((key) => ({
    path: key,
    reason: 'must not stand beside services',
    cel: `!has(self.services) || !has(self.${key})${SIDE[key].shape.schema.type === 'array' ? ` || size(self.${key}) == 0` : ''}`,
    holds: (side) => side.services === undefined || isUnsaid(side[key]),
  }))
}

function isUnsaid(value: unknown): boolean {
  return value === undefined || (Array.isArray(value) && value.length === 0)
}

const COMMON = {
  action: required('What becomes of a packet that matches. Log is left out, and said to be.', word('Allow', 'Deny', 'Pass', 'Log')),
  ipVersion: field('Family of the packet; that of the prefixes, or any, when it is missing.', integer(4, 6)),
  protocol: field('Protocol of the packet, by name or number.', protocol),
  notProtocol: field('What its protocol must not be.', protocol),
  icmp: field('Its ICMP type and code.', icmp),
  notICMP: field('What its ICMP type and code must not be.', icmp),
  metadata: field('For people; nothing is made of it.', object({ annotations: field('Texts by name.', texts) })),
} as const

export type RuleValues = Values<typeof COMMON> & { readonly source: SideValues | undefined; readonly destination: SideValues | undefined }

const PORT_PROTOCOLS =
  "['TCP', 'UDP', 'SCTP', 'tcp', 'udp', 'sctp', '6', '17', '132'].exists(p, self.protocol == p) || [6, 17, 132].exists(p, self.protocol == p)"
const ICMP_PROTOCOLS =
  "['ICMP', 'icmp', 'ICMPv6', 'icmpv6', '1', '58'].exists(p, self.protocol == p) || [1, 58].exists(p, self.protocol == p)"

const RULES: readonly Rule<RuleValues>[] = [
  ...(['source', 'destination'] as const).flatMap((side) =>
    (['ports', 'notPorts'] as const).map((key) => ({
      path: `${side}.${key}`,
      reason: 'needs protocol TCP, UDP or SCTP',
      cel: `!has(self.${side}) || !has(self.${side}.${key}) || size(self.${side}.${key}) == 0 || (has(self.protocol) && (${PORT_PROTOCOLS}))`,
      holds: (rule: RuleValues) => isUnsaid(rule[side]?.[key]) || PORTED.includes(rule.protocol),
    })),
  ),
  {
    path: 'icmp',
    reason: 'needs protocol ICMP or ICMPv6',
    cel: `!has(self.icmp) || !has(self.icmp.type) || (has(self.protocol) && (${ICMP_PROTOCOLS}))`,
    holds: ({ icmp: asked, protocol: number }) => asked?.type === undefined || number === ICMP || number === ICMPV6,
  },
]

/** All prefixes of one family, and that of ipVersion. */
const ONE_FAMILY: readonly Constraint[] = [
  { version: 4, pattern: '^[0-9./]*$' },
  { version: 6, pattern: ':' },
].map(({ version, pattern }) => {
  const nets = { items: { pattern } }
  const side = { properties: { nets, notNets: nets } }
  return { properties: { ipVersion: { enum: [version] }, source: side, destination: side } }
})

const REFUSED = { http: ['object', 'application layer policy is not supported'] } as const

/** Of one kind of policy: what a rule may be, by direction. The end that is not the policy's own may be a service. */
function rulesOf(service: ServiceShape) {
  const common = { rules: RULES, refused: REFUSED, schema: { anyOf: ONE_FAMILY } }
  const peer = withServices(service)
  // its ports are those it sends from
  const source = object(peer, { rules: alone(PEER) })
  const destination = object(peer, { rules: alone([...PEER, 'ports', 'notPorts']) })
  const receiver = object(SIDE, { refused: { services: ['object', 'must not be the destination of an ingress rule'] } })
  const sender = object(SIDE, { refused: { services: ['object', 'must not be the source of an egress rule'] } })
  return {
    ingress: object({ ...COMMON, source: field('Who sends.', source), destination: field('Who receives.', receiver) }, common),
    egress: object({ ...COMMON, source: field('Who sends.', sender), destination: field('Who receives.', destination) }, common),
  } as const
}

/** By whether the policy has a namespace, then by direction. */
export const RULE_SHAPES = { namespaced: rulesOf(serviceOfNamespaced), global: rulesOf(serviceOfGlobal) } as const
