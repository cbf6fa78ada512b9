// SPDX-License-Identifier: Apache-2.0
/** Which flows are wanted: the same filter several times means any of them, different ones all of them, and what is
 * negated none. Layer: cli (pure). */
import { ConfigError, errorText } from '#lib/base/errors.ts'
import { addrBits, cidrContains, parseAddr, tryParseAddr, tryParseCidr } from '#lib/base/ip.ts'
import type { EndDetails, FlowEnd, FlowUpdate } from '#lib/flows/flow.ts'
import { selects } from '#lib/model/selector/selector.ts'
import { parseSelector } from '#lib/model/selector/text.ts'
import type { Flag } from '../given.ts'

export type FlowFilter = (update: FlowUpdate) => boolean

interface End {
  readonly end: FlowEnd
  readonly details: EndDetails
  /** empty: they are not told */
  readonly ports: readonly number[]
}

type EndTest = (end: End) => boolean

/** Of one end; each is a flag of either end, and one of each, as --from-pod and --to-pod. Throws an Error that says
 * what is wrong. */
const OF_ENDS: Readonly<Record<string, { readonly value: string; readonly about: string; readonly test: (text: string) => EndTest }>> = {
  namespace: {
    value: 'NS',
    about: 'namespace of an end',
    test:
      (text) =>
      ({ end }) =>
        end.namespace === text,
  },
  pod: { value: '[NS/]POD', about: 'what the name of a pod begins with', test: podTest },
  label: { value: 'SELECTOR', about: 'labels of an end: app=web, or a selector of policies', test: labelTest },
  ip: { value: 'ADDR', about: 'address of an end, or a prefix', test: addressTest },
  port: { value: 'PORT[-PORT]', about: 'port of an end', test: portTest },
  workload: { value: '[KIND/]NAME', about: 'what has made the pods of an end: Deployment/web', test: workloadTest },
}
const WORD = { from: 'source', to: 'destination' } as const
const SIDES = ['from', 'to'] as const
const SHORT: Readonly<Record<string, string>> = { namespace: 'n', label: 'l' }

/** Of the whole flow. */
const OF_FLOWS: Readonly<Record<string, { readonly value: string; readonly about: string; readonly test: (text: string) => FlowFilter }>> =
  {
    service: { value: '[NS/]NAME', about: 'service that was meant', test: serviceTest },
    'node-name': {
      value: 'NODE',
      about: 'node that tells it',
      test:
        (text) =>
        ({ node }) =>
          node === text,
    },
    protocol: { value: 'PROTO', about: 'tcp, udp, sctp, icmp, icmp6 or a number', test: protocolTest },
    verdict: { value: 'VERDICT', about: 'allowed, denied (by a rule) or dropped (for another reason)', test: verdictTest },
    'drop-reason': {
      value: 'REASON',
      about: 'why it was dropped: no_route',
      test: (text) => (update) => update.window.key.reason === text,
    },
    policy: { value: '[NS/]NAME', about: 'policy that had a say', test: policyTest },
  }

export const FILTER_FLAGS: readonly Flag[] = [
  ...Object.entries(OF_ENDS).flatMap(([name, { value, about }]): Flag[] => {
    const short = SHORT[name]
    const either: Flag = { name, value, about, multiple: true, ...(short === undefined ? {} : { short }) }
    return [either, ...SIDES.map((side): Flag => ({ name: `${side}-${name}`, value, about: `of the ${WORD[side]}`, multiple: true }))]
  }),
  ...Object.entries(OF_FLOWS).map(([name, { value, about }]): Flag => ({ name, value, about, multiple: true })),
]

/** Of flags as they stand. Throws ConfigError that names the flag. */
export function readFlowFilter(flags: readonly (readonly [flag: string, value: string])[]): FlowFilter {
  const wanted = new Map<string, FlowFilter[]>()
  const unwanted: FlowFilter[] = []
  let isNegated = false
  for (const [flag, value] of flags) {
    if (flag === 'not') {
      isNegated = true
      continue
    }
    const test = testOf(flag, value)
    if (test === undefined) {
      if (isNegated) throw new ConfigError('--not', `negates no --${flag}`)
      continue
    }
    if (isNegated) unwanted.push(test)
    else wanted.set(flag, [...(wanted.get(flag) ?? []), test])
    isNegated = false
  }
  if (isNegated) throw new ConfigError('--not', 'has no filter behind it')
  return (update) => [...wanted.values()].every((tests) => tests.some((test) => test(update))) && !unwanted.some((test) => test(update))
}

/** undefined: it is no filter */
function testOf(flag: string, value: string): FlowFilter | undefined {
  const side = SIDES.find((one) => flag.startsWith(`${one}-`))
  const ofEnds = OF_ENDS[side === undefined ? flag : flag.slice(side.length + 1)]
  try {
    if (ofEnds === undefined) return OF_FLOWS[flag]?.test(value)
    const test = ofEnds.test(value)
    return (update) => endsOf(update, side).some(test)
  } catch (thrown) {
    throw new ConfigError(`--${flag}`, errorText(thrown), thrown)
  }
}

function endsOf({ window: { key, source, dest, sourcePorts } }: FlowUpdate, side: 'from' | 'to' | undefined): readonly End[] {
  const from = { end: key.source, details: source, ports: sourcePorts }
  const to = { end: key.dest, details: dest, ports: [key.destPort] }
  return side === undefined ? [from, to] : [side === 'from' ? from : to]
}

function podTest(text: string): EndTest {
  const { namespace, name } = named(text)
  return ({ end, details }) => isIn(end.namespace, namespace) && [end.name, ...details.pods].some((pod) => pod.startsWith(name))
}

/** "app=web" as well as what policies write. */
function labelTest(text: string): EndTest {
  const plain = /^([\w./-]+)=([\w.-]*)$/.exec(text)
  const selector = parseSelector(plain === null ? text : `${plain[1] ?? ''} == '${plain[2] ?? ''}'`)
  return ({ details }) => selects(selector, new Map(details.labels.map((label) => [keyOf(label), label.slice(keyOf(label).length + 1)])))
}

function keyOf(label: string): string {
  return label.slice(0, label.indexOf('='))
}

function addressTest(text: string): EndTest {
  const addr = tryParseAddr(text)
  const prefix = addr === undefined ? tryParseCidr(text) : { addr, bits: addrBits(addr) }
  if (prefix === undefined) throw new Error(`${JSON.stringify(text)} is neither an address nor a prefix`)
  return ({ details }) => details.addresses.some((one) => cidrContains(prefix, parseAddr(one)))
}

function portTest(text: string): EndTest {
  const [, first, last = first] = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(text) ?? []
  if (first === undefined || Number(last) > 65535) throw new Error(`${JSON.stringify(text)} is neither a port nor a range of them`)
  return ({ ports }) => ports.some((port) => Number(first) <= port && port <= Number(last))
}

function workloadTest(text: string): EndTest {
  return ({ details: { owner } }) => owner !== '' && (text.includes('/') ? owner === text : owner.slice(owner.indexOf('/') + 1) === text)
}

function serviceTest(text: string): FlowFilter {
  const { namespace, name } = named(text)
  return ({ window: { key } }) => key.service?.name === name && isIn(key.service.namespace, namespace)
}

function policyTest(text: string): FlowFilter {
  const { namespace, name } = named(text)
  const isMeant = (hit: { readonly namespace: string; readonly name: string }): boolean =>
    hit.name === name && isIn(hit.namespace, namespace)
  return ({ window: { key } }) =>
    [...key.enforced, ...key.pending].some((hit) => isMeant(hit) || (hit.trigger !== undefined && isMeant(hit.trigger)))
}

function protocolTest(text: string): FlowFilter {
  if (!/^(tcp|udp|sctp|icmp|icmp6|\d{1,3})$/i.test(text)) throw new Error(`${JSON.stringify(text)} is no protocol`)
  return ({ window: { key } }) => key.protocol === text.toLowerCase()
}

function verdictTest(text: string): FlowFilter {
  switch (text) {
    case 'allowed':
      return ({ window: { key } }) => key.action === 'Allow'
    case 'denied':
      return ({ window: { key } }) => key.action === 'Deny' && key.reason === ''
    case 'dropped':
      return ({ window: { key } }) => key.reason !== ''
    default:
      throw new Error(`${JSON.stringify(text)} is none: allowed, denied, dropped`)
  }
}

function named(text: string): { readonly namespace: string | undefined; readonly name: string } {
  const slash = text.indexOf('/')
  return slash < 0 ? { namespace: undefined, name: text } : { namespace: text.slice(0, slash), name: text.slice(slash + 1) }
}

function isIn(namespace: string, wanted: string | undefined): boolean {
  return wanted === undefined || namespace === wanted
}
