// SPDX-License-Identifier: Apache-2.0
/** Whether a rule is about a packet. Layer: lib/policy (pure). */
import { isV4, isWithin } from '../base/ip.ts'
import type { Addr } from '../base/ip.ts'
import type { IcmpMatch, PortMatch, Rule, Side } from '../model/policy.ts'
import { selects } from '../model/selector.ts'
import type { Selector } from '../model/selector.ts'
import { hasPorts } from './packet.ts'
import type { Packet } from './packet.ts'
import type { Peers } from './peers.ts'

/** True when everything that the rule says holds. */
export function isAbout(rule: Rule, packet: Packet, peers: Peers): boolean {
  return (
    (rule.ipVersion === undefined || (rule.ipVersion === 4) === isV4(packet.dst)) &&
    (rule.protocols?.includes(packet.protocol) ?? true) &&
    !rule.notProtocols.includes(packet.protocol) &&
    (rule.icmp === undefined || isIcmp(rule.icmp, packet)) &&
    (rule.notIcmp === undefined || !isIcmp(rule.notIcmp, packet)) &&
    isSide(rule.source, { addr: packet.src, port: packet.sport, way: 'source' }, packet, peers) &&
    isSide(rule.destination, { addr: packet.dst, port: packet.dport, way: 'destination' }, packet, peers)
  )
}

function isIcmp(match: IcmpMatch, { icmp }: Packet): boolean {
  return icmp !== undefined && icmp.type === match.type && (match.code === undefined || icmp.code === match.code)
}

interface End {
  readonly addr: Addr
  readonly port: number
  readonly way: 'source' | 'destination'
}

function isSide(side: Side, end: End, packet: Packet, peers: Peers): boolean {
  const fits = (selector: Selector): boolean => peers.labels(end.addr).some((labels) => selects(selector, labels))
  const { selector, notSelector, nodes, services } = side
  return (
    (selector === undefined || fits(selector)) &&
    (notSelector === undefined || !fits(notSelector)) &&
    (nodes === undefined || peers.nodes(end.addr).some((labels) => selects(nodes, labels))) &&
    (side.nets === undefined || isWithin(side.nets, end.addr)) &&
    !isWithin(side.notNets, end.addr) &&
    (side.ports === undefined || isPort(side.ports, end, packet, peers)) &&
    !isPort(side.notPorts, end, packet, peers) &&
    (services === undefined || services.some((service) => isServed(`${service.namespace}/${service.name}`, end, packet, peers)))
  )
}

function isPort(matches: readonly PortMatch[], end: End, { protocol }: Packet, peers: Peers): boolean {
  if (!hasPorts(protocol)) return false
  return matches.some((match) =>
    'name' in match
      ? peers.ports(end.addr).some((port) => port.name === match.name && port.protocol === protocol && port.port === end.port)
      : match.from <= end.port && end.port <= match.to,
  )
}

function isServed(service: string, end: End, { protocol }: Packet, peers: Peers): boolean {
  return end.way === 'source' ? peers.isEndpointOf(service, end.addr) : peers.isEndpointOf(service, end.addr, { protocol, port: end.port })
}
