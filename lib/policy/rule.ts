// SPDX-License-Identifier: Apache-2.0
/** Whether a rule is about a packet. Layer: lib/policy (pure). */
import { isV4, isWithin } from '../base/ip.ts'
import type { Addr } from '../base/ip.ts'
import type { IcmpMatch, NamedPort, PortMatch, Rule, Side } from '../model/policy.ts'
import { nameKey } from '../model/ref.ts'
import { ALL, selects } from '../model/selector.ts'
import type { Selector } from '../model/selector.ts'
import { hasPorts } from './packet.ts'
import type { Packet } from './packet.ts'
import type { Peers } from './peers.ts'

/** True when everything that the rule says holds. */
export function isAbout(rule: Rule, packet: Packet, peers: Peers): boolean {
  const { protocol } = packet
  return (
    (rule.ipVersion === undefined || (rule.ipVersion === 4) === isV4(packet.dst)) &&
    (rule.protocols?.includes(protocol) ?? true) &&
    !rule.notProtocols.includes(protocol) &&
    (rule.icmp === undefined || isIcmp(rule.icmp, packet)) &&
    (rule.notIcmp === undefined || !isIcmp(rule.notIcmp, packet)) &&
    isSide(rule.source, { addr: packet.src, port: packet.sport, protocol, way: 'source' }, peers) &&
    isSide(rule.destination, { addr: packet.dst, port: packet.dport, protocol, way: 'destination' }, peers)
  )
}

function isIcmp(match: IcmpMatch, { icmp }: Packet): boolean {
  return icmp !== undefined && icmp.type === match.type && (match.code === undefined || icmp.code === match.code)
}

/** One end of a packet, with the rest of it. */
interface End {
  readonly addr: Addr
  readonly port: number
  readonly protocol: number
  readonly way: 'source' | 'destination'
}

function isSide(side: Side, end: End, peers: Peers): boolean {
  const fits = (selector: Selector): boolean => peers.labels(end.addr).some((labels) => selects(selector, labels))
  const { selector, notSelector, nodes, services } = side
  const named = peers.ports(end.addr, selector ?? ALL)
  const isPort = (matches: readonly PortMatch[]): boolean => hasPorts(end.protocol) && matches.some((match) => isMet(match, end, named))
  return (
    (selector === undefined || fits(selector)) &&
    (notSelector === undefined || !fits(notSelector)) &&
    (nodes === undefined || peers.nodes(end.addr).some((labels) => selects(nodes, labels))) &&
    (side.nets === undefined || isWithin(side.nets, end.addr)) &&
    !isWithin(side.notNets, end.addr) &&
    (side.ports === undefined || isPort(side.ports)) &&
    !isPort(side.notPorts) &&
    (services === undefined || services.some((service) => isServed(nameKey(service), end, peers)))
  )
}

/** `named` are the ports that names mean at this end. */
function isMet(match: PortMatch, { port, protocol }: End, named: readonly NamedPort[]): boolean {
  if (!('name' in match)) return match.from <= port && port <= match.to
  return named.some((own) => own.name === match.name && own.protocol === protocol && own.port === port)
}

function isServed(service: string, { addr, port, protocol, way }: End, peers: Peers): boolean {
  return way === 'source' ? peers.isEndpointOf(service, addr) : peers.isEndpointOf(service, addr, { protocol, port })
}
