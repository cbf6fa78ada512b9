// SPDX-License-Identifier: Apache-2.0
/** Whether a rule is about a packet. Layer: lib/policy (pure). */
import { isV4, isWithin } from '../base/ip.ts'
import type { Addr } from '../base/ip.ts'
import type { Labels } from '../model/labels.ts'
import type { IcmpMatch, PortMatch, Rule, Side } from '../model/policy.ts'
import { nameKey } from '../model/ref.ts'
import { selects } from '../model/selector/selector.ts'
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
  const { nodes, services } = side
  const own = peers.ports(end.addr, (labels) => isMeant(side, labels))
  const names = new Set(own.flatMap(({ name, protocol, port }) => (protocol === end.protocol && port === end.port ? [name] : [])))
  const isPort = (matches: readonly PortMatch[]): boolean => hasPorts(end.protocol) && matches.some((match) => isMet(match, end, names))
  return (
    isOwned(side, peers.labels(end.addr)) &&
    (nodes === undefined || peers.nodes(end.addr).some((labels) => selects(nodes, labels))) &&
    (side.nets === undefined || isWithin(side.nets, end.addr)) &&
    !isWithin(side.notNets, end.addr) &&
    (side.ports === undefined || isPort(side.ports)) &&
    !isPort(side.notPorts) &&
    (services === undefined || services.some((service) => isServed(nameKey(service), end, peers)))
  )
}

/** An owner that the selector finds and notSelector does not. */
function isMeant({ selector, notSelector }: Side, labels: Labels): boolean {
  if (selector === undefined) return true
  return selects(selector, labels) && (notSelector === undefined || !selects(notSelector, labels))
}

/** With a selector one of the address's owners must be meant by both; without one, notSelector must find none of
 * them, if there are any. */
function isOwned(side: Side, owners: readonly Labels[]): boolean {
  const { selector, notSelector } = side
  if (selector !== undefined) return owners.some((labels) => isMeant(side, labels))
  return notSelector === undefined || !owners.some((labels) => selects(notSelector, labels))
}

/** `names` are those that mean the port at this end. */
function isMet(match: PortMatch, { port }: End, names: ReadonlySet<string>): boolean {
  return 'name' in match ? names.has(match.name) : match.from <= port && port <= match.to
}

function isServed(service: string, { addr, port, protocol, way }: End, peers: Peers): boolean {
  return way === 'source' ? peers.isEndpointOf(service, addr) : peers.isEndpointOf(service, addr, { protocol, port })
}
