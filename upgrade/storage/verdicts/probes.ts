// SPDX-License-Identifier: Apache-2.0
/** Which packets tell rule lists apart: one of each protocol and port that a rule names, and some that none names.
 * Layer: upgrade (pure). */
import { isV4, type Addr } from '#lib/base/ip.ts'
import type { NamedPort, PortMatch, Rule, Side } from '#lib/model/policy.ts'
import { hasPorts, ICMP, ICMPV6, TCP, UDP, type Packet } from '#lib/policy/packet.ts'

/** A packet without its ends. */
export type Probe = Omit<Packet, 'src' | 'dst'>

/** Of a client; no rule is likely to name it. */
const CLIENT_PORT = 40_001
const ECHO = { v4: { type: 8, code: 0 }, v6: { type: 128, code: 0 } }
/** Generic routing encapsulation: one that has neither ports nor types. */
const OTHER = 47

/** `named`: what names of ports may mean. Several rules together may ask for both ports of a packet. */
export function probesOf(rules: readonly Rule[], named: readonly NamedPort[]): readonly Probe[] {
  const asked = rules.flatMap((rule) => [...(rule.protocols ?? []), ...rule.notProtocols])
  // those that no rule names are alike to all rules
  const unnamed = [TCP, UDP, OTHER].find((protocol) => !asked.includes(protocol)) ?? TCP
  const protocols = [...new Set([unnamed, ...asked])]
  return protocols.flatMap((protocol) => {
    const about = rules.filter((rule) => rule.protocols?.includes(protocol) ?? true)
    if (protocol === ICMP || protocol === ICMPV6) return icmpProbes(protocol, about)
    if (!hasPorts(protocol)) return [{ protocol, sport: 0, dport: 0, icmp: undefined }]
    const portsOf = (sides: readonly Side[], unnamed: number): readonly number[] => {
      const matches = sides.flatMap(({ ports = [], notPorts }) => [...ports, ...notPorts])
      return [...new Set([unnamed, ...matches.flatMap((match) => endsOf(match, { named, protocol }))])]
    }
    const sources = about.map(({ source }) => source)
    const destinations = about.map(({ destination }) => destination)
    const dports = portsOf(destinations, freePort(destinations))
    return portsOf(sources, CLIENT_PORT).flatMap((sport) => dports.map((dport) => ({ protocol, sport, dport, icmp: undefined })))
  })
}

function icmpProbes(protocol: number, rules: readonly Rule[]): readonly Probe[] {
  const asked = rules.flatMap(({ icmp, notIcmp }) => [icmp, notIcmp]).filter((match) => match !== undefined)
  const types = [protocol === ICMP ? ECHO.v4 : ECHO.v6, ...asked.map(({ type, code = 0 }) => ({ type, code }))]
  const each = new Map(types.map((icmp) => [`${icmp.type}/${icmp.code}`, icmp]))
  return [...each.values()].map((icmp) => ({ protocol, sport: 0, dport: 0, icmp }))
}

function endsOf(
  match: PortMatch,
  { named, protocol }: { readonly named: readonly NamedPort[]; readonly protocol: number },
): readonly number[] {
  if (!('name' in match)) return [...new Set([match.from, match.to])]
  return named.filter((one) => one.name === match.name && one.protocol === protocol).map(({ port }) => port)
}

/** That no rule names. */
function freePort(sides: readonly Side[]): number {
  const ranges = sides.flatMap(({ ports = [], notPorts }) => [...ports, ...notPorts]).filter((match) => 'from' in match)
  const candidates = [1, ...ranges.map(({ to }) => to + 1)].filter((port) => port < 65_536)
  return candidates.find((port) => !ranges.some(({ from, to }) => from <= port && port <= to)) ?? 1
}

/** One for each family that both ends have. */
export function packetsBetween(from: readonly Addr[], to: readonly Addr[], probe: Probe): readonly Packet[] {
  return [true, false].flatMap((v4) => {
    const [src, dst] = [from, to].map((addresses) => addresses.find((addr) => isV4(addr) === v4))
    if (src === undefined || dst === undefined || (v4 && probe.protocol === ICMPV6) || (!v4 && probe.protocol === ICMP)) return []
    return [{ ...probe, src, dst }]
  })
}
