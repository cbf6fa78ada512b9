// SPDX-License-Identifier: Apache-2.0
/** What --addr, --port and --proto leave of flows and frontends. Layer: cli (pure). */
import { ConfigError } from '#lib/base/errors.ts'
import { addrBits, cidrContains, parsePort, protocolText, tryParseAddr, tryParseCidr, type Addr, type Cidr } from '#lib/base/ip.ts'

/** undefined: all of them */
export interface Filter {
  readonly addr: Cidr | undefined
  readonly port: number | undefined
  /** the number in the IP header */
  readonly proto: number | undefined
}

export interface End {
  readonly addr: Addr
  readonly port: number
}

const EVERY_PROTOCOL = Array.from({ length: 256 }, (_, number) => number)

/** Throws ConfigError that names the flag. */
export function readFilter(text: (flag: string) => string | undefined): Filter {
  const [addr, port, proto] = [text('addr'), text('port'), text('proto')]
  return {
    addr: addr === undefined ? undefined : readPrefix(addr),
    port: port === undefined ? undefined : readPort(port),
    proto: proto === undefined ? undefined : readProtocol(proto),
  }
}

/** One of the ends has the address and the port that are asked for. */
export function passes({ addr, port, proto }: Filter, what: { readonly proto: number; readonly ends: readonly End[] }): boolean {
  if (proto !== undefined && proto !== what.proto) return false
  return what.ends.some((end) => (addr === undefined || cidrContains(addr, end.addr)) && (port === undefined || port === end.port))
}

function readPrefix(text: string): Cidr {
  const addr = tryParseAddr(text)
  const prefix = addr === undefined ? tryParseCidr(text) : { addr, bits: addrBits(addr) }
  if (prefix === undefined) throw new ConfigError('--addr', `${JSON.stringify(text)} is neither an address nor a prefix`)
  return prefix
}

function readPort(text: string): number {
  try {
    return parsePort(text)
  } catch (thrown) {
    throw new ConfigError('--port', `${JSON.stringify(text)} is no port (1..65535)`, thrown)
  }
}

/** By name in any case, or by number. */
function readProtocol(text: string): number {
  const number = EVERY_PROTOCOL.find((one) => protocolText(one).toLowerCase() === text.toLowerCase() || String(one) === text)
  if (number === undefined) throw new ConfigError('--proto', `${JSON.stringify(text)} is no protocol: TCP, UDP, ICMP, ICMPv6, or a number`)
  return number
}
