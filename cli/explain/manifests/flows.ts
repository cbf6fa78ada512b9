// SPDX-License-Identifier: Apache-2.0
/** A question about names → packets: one for each family that both ends have. Layer: cli (pure). */
import { ConfigError } from '#lib/base/errors.ts'
import { formatAddr, protocolText, type Addr } from '#lib/base/ip.ts'
import { nameKey } from '#lib/model/ref.ts'
import { hasOwnAddresses, type Pod } from '#lib/model/pod.ts'
import type { Service } from '#lib/model/service.ts'
import type { Packet } from '#lib/policy/packet.ts'
import { packetsBetween } from '../packets.ts'
import { END_FORMS, type EndName, type Query } from '../query.ts'
import type { ExplainedCluster } from './cluster.ts'

/** Of no service, and of no rule that means servers. */
export const SOURCE_PORT = 50_000

interface End {
  readonly addrs: readonly Addr[]
  readonly port: number | undefined
}

/** Throws ConfigError for what is not there. */
export function packetsOf(world: ExplainedCluster, query: Query): readonly Packet[] {
  const from = endOf(world, query.from, query)
  const to = endOf(world, query.to, query)
  if (query.protocol !== 'icmp' && to.port === undefined)
    throw new ConfigError(query.to.text, `${query.protocol} needs a port: ${query.to.text}:PORT`)
  const sport = query.protocol === 'icmp' ? 0 : (query.sourcePort ?? SOURCE_PORT)
  return packetsBetween(query, { sources: from.addrs, destinations: to.addrs, sport, dport: to.port ?? 0 })
}

function endOf(world: ExplainedCluster, end: EndName, query: Query): End {
  switch (end.kind) {
    case 'address':
      return { addrs: [end.addr], port: numberIn(end) }
    case 'node': {
      const node = world.snapshot.nodes.get(end.name)
      if (node === undefined) throw missing(end, 'node')
      return { addrs: withAddresses(end, node.addresses), port: numberIn(end) }
    }
    case 'pod': {
      const pod = world.snapshot.pods.get(nameKey(end))
      if (pod === undefined) throw missing(end, 'pod')
      if (!pod.hostNetwork && !hasOwnAddresses(pod)) throw new ConfigError(end.text, noAddressText(pod))
      return { addrs: withAddresses(end, pod.podIPs), port: podPort(pod, end, query) }
    }
    case 'service': {
      const service = world.snapshot.services.get(nameKey(end))
      if (service === undefined) throw missing(end, 'service')
      return { addrs: serviceAddrs(service, end), port: query.protocol === 'icmp' ? undefined : servicePort(service, end, query) }
    }
  }
}

function missing(end: EndName, kind: string): ConfigError {
  return new ConfigError(end.text, `there is no such ${kind} (${END_FORMS})`)
}

function noAddressText({ lost = [] }: Pod): string {
  const [first] = lost
  return first === undefined ? 'has no address, or has finished' : `has no address: ${formatAddr(first.addr)} is that of ${first.to}`
}

function withAddresses(end: EndName, addrs: readonly Addr[]): readonly Addr[] {
  if (addrs.length === 0) throw new ConfigError(end.text, 'has no address')
  return addrs
}

function numberIn({ text, port }: EndName): number | undefined {
  if (port === undefined) return undefined
  if (!/^\d+$/.test(port)) throw new ConfigError(text, 'only ports of pods and services have names')
  return Number(port)
}

function podPort(pod: Pod, end: EndName, { protocol }: Query): number | undefined {
  if (end.port === undefined || /^\d+$/.test(end.port)) return numberIn(end)
  const named = pod.ports.find((own) => own.name === end.port && protocolText(own.protocol).toLowerCase() === protocol)
  if (named === undefined) throw new ConfigError(end.text, `the pod has no ${protocol} port of this name`)
  return named.port
}

function serviceAddrs(service: Service, end: EndName): readonly Addr[] {
  const addrs = [...service.clusterIPs, ...service.loadBalancerIPs, ...service.externalIPs]
  if (service.notServed !== undefined || addrs.length === 0)
    throw new ConfigError(end.text, `is not translated (${service.notServed ?? 'no address'}): ask for one of its pods`)
  return addrs
}

function servicePort(service: Service, end: EndName, { protocol }: Query): number {
  const ports = service.ports.filter((own) => own.protocol.toLowerCase() === protocol)
  const only = ports.length === 1 ? ports[0] : undefined
  const found = end.port === undefined ? only : ports.find((own) => own.name === end.port || String(own.port) === end.port)
  if (found === undefined) {
    const all = service.ports.map((own) => `${own.port}/${own.protocol}${own.name === '' ? '' : ` (${own.name})`}`)
    throw new ConfigError(end.text, `the service has no such ${protocol} port: ${all.join(', ')}`)
  }
  return found.port
}
