// SPDX-License-Identifier: Apache-2.0
/** What is asked about a flow, as it is written. Layer: cli (pure). */
import { ConfigError } from '#lib/base/errors.ts'
import { tryParseAddr, type Addr } from '#lib/base/ip.ts'

/** One end as it is named. The port is a number or a name. */
export type EndName = { readonly text: string; readonly port: string | undefined } & (
  | { readonly kind: 'pod' | 'service'; readonly namespace: string; readonly name: string }
  | { readonly kind: 'node'; readonly name: string }
  | { readonly kind: 'address'; readonly addr: Addr }
)

export type ProtocolName = 'tcp' | 'udp' | 'sctp' | 'icmp'

export interface Query {
  readonly protocol: ProtocolName
  /** of ICMP; undefined: an echo request */
  readonly icmp: { readonly type: number; readonly code: number } | undefined
  readonly from: EndName
  readonly to: EndName
  /** undefined: one that no rule is likely to mean */
  readonly sourcePort: number | undefined
}

const PROTOCOLS: readonly ProtocolName[] = ['tcp', 'udp', 'sctp', 'icmp']

export const END_FORMS = 'ns/pod, ns/pod:port, svc/ns/name:port, node/name:port, or an address with or without a port'

/** "tcp", "icmp", "icmp/8/0". Throws ConfigError. */
export function readProtocol(text: string): Pick<Query, 'protocol' | 'icmp'> {
  const [name = '', ...rest] = text.toLowerCase().split('/')
  const protocol = PROTOCOLS.find((one) => one === name)
  const isIcmp = protocol === 'icmp' && rest.length <= 2 && rest.every(isByte)
  if (protocol === undefined || (rest.length > 0 && !isIcmp))
    throw new ConfigError('protocol', `${JSON.stringify(text)} is none of tcp, udp, sctp, icmp, icmp/TYPE, icmp/TYPE/CODE`)
  const [type, code = '0'] = rest
  return { protocol, icmp: type === undefined ? undefined : { type: Number(type), code: Number(code) } }
}

function isByte(text: string): boolean {
  return /^\d{1,3}$/.test(text) && Number(text) <= 255
}

/** Throws ConfigError. */
export function readEnd(text: string): EndName {
  const [, bracketed, after = ''] = /^\[([^\]]+)\](.*)$/.exec(text) ?? []
  if (bracketed !== undefined) return addressEnd(text, bracketed, after)
  const whole = tryParseAddr(text)
  if (whole !== undefined) return { kind: 'address', text, addr: whole, port: undefined }
  const colon = text.lastIndexOf(':')
  const name = colon < 0 ? text : text.slice(0, colon)
  const port = colon < 0 ? undefined : portText(text, text.slice(colon + 1))
  const addr = tryParseAddr(name)
  if (addr !== undefined) return { kind: 'address', text, addr, port }
  const parts = name.split('/')
  const [first = '', second = '', third = ''] = parts
  if (parts.some((part) => part === '')) throw unknownEnd(text)
  if (parts.length === 2) return first === 'node' ? { kind: 'node', text, name: second, port } : pod(text, { first, second, port })
  if (parts.length !== 3 || (first !== 'svc' && first !== 'pod')) throw unknownEnd(text)
  return { kind: first === 'svc' ? 'service' : 'pod', text, namespace: second, name: third, port }
}

function pod(text: string, of: { readonly first: string; readonly second: string; readonly port: string | undefined }): EndName {
  return { kind: 'pod', text, namespace: of.first, name: of.second, port: of.port }
}

function addressEnd(text: string, address: string, after: string): EndName {
  const addr = tryParseAddr(address)
  if (addr === undefined || (after !== '' && !after.startsWith(':'))) throw unknownEnd(text)
  return { kind: 'address', text, addr, port: after === '' ? undefined : portText(text, after.slice(1)) }
}

function portText(whole: string, text: string): string {
  if (/^\d+$/.test(text) ? Number(text) >= 1 && Number(text) <= 65535 : /^[a-z0-9-]+$/.test(text)) return text
  throw new ConfigError(whole, `${JSON.stringify(text)} is no port`)
}

function unknownEnd(text: string): ConfigError {
  return new ConfigError(JSON.stringify(text), `is no end of a flow: ${END_FORMS}`)
}

/** "tcp shop/web > shop/db:5432", "icmp/8/0 10.0.0.1 > 10.0.0.2", "udp 10.0.0.1:4000 > 10.96.0.10:53". Throws
 * ConfigError. */
export function readFlow(text: string): Query {
  const [, protocol = '', from = '', to = ''] = /^\s*(\S+)\s+(\S+)\s*>\s*(\S+)\s*$/.exec(text) ?? []
  if (to === '') throw new ConfigError(JSON.stringify(text), 'is no flow: PROTOCOL FROM > TO')
  return queryOf({ protocol, from, to })
}

/** The source port is that of the first end unless another is given. Throws ConfigError. */
export function queryOf(texts: {
  readonly protocol: string
  readonly from: string
  readonly to: string
  readonly sourcePort?: string | undefined
}): Query {
  const from = readEnd(texts.from)
  const port = texts.sourcePort ?? from.port
  if (port !== undefined && !/^\d+$/.test(port)) throw new ConfigError('source port', `${JSON.stringify(port)} is no number`)
  const given = port === undefined ? undefined : Number(portText('source port', port))
  return { ...readProtocol(texts.protocol), from, to: readEnd(texts.to), sourcePort: given }
}
