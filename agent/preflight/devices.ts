// SPDX-License-Identifier: Apache-2.0
/** Whether the node's devices are such that programs can work on them, and whose others there are. Layer: agent. */
import { readFileSync } from 'node:fs'
import { NetlinkSocket } from '#native'
import { formatCidr, isV4, maskAddr, tryParseAddr, type Addr } from '#lib/base/ip.ts'
import { finding, type Finding } from '#lib/preflight/findings.ts'
import type { Facts } from '#lib/preflight/report.ts'
import { TUNNEL_BYTES } from '../cni/networking/mtu.ts'
import { defaultConfig } from '../config/config.ts'
import { decideDevices, type Decision } from '../dataplane/host/devices.ts'
import { routeLookupOf, type RouteLookup } from '../dataplane/host/route-lookup.ts'
import { listInterfaces } from '../interfaces/list-interfaces.ts'
import { SCOPE_GLOBAL } from '../interfaces/netlink/addr.ts'
import { NETLINK_ROUTE, NetlinkExchange } from '../interfaces/netlink/exchange.ts'
import { listRoutes } from '../interfaces/netlink/lists.ts'
import { MAIN_TABLE } from '../interfaces/netlink/route.ts'
import type { Interface, Interfaces } from '../interfaces/table.ts'
import { foreignDevices } from './data-planes.ts'
import type { PreflightOptions } from './options.ts'
import type { Probed } from './probed.ts'

/** IPv6 needs so much of a device, and most paths of IPv4 have it. */
const LEAST_POD_MTU = 1280
const IPVS_DEVICE = 'kube-ipvs0'
/** A report is short. */
const MOST_SUBNETS = 8

type DeviceOptions = Pick<PreflightOptions, 'addresses' | 'cni' | 'mtu'>

export function probeDevices(options: DeviceOptions): Probed {
  const interfaces = listInterfaces()
  const decisions = decide(interfaces, waysOf(), options)
  return {
    findings: [
      ...decisions.flatMap(kindFindings),
      ...mtuFindings(decisions, options.mtu),
      ...ipvsFindings(interfaces, ipvsTable()),
      ...(options.cni === 'Netplane' ? foreignDeviceFindings(interfaces) : []),
    ],
    facts: deviceFacts(decisions),
  }
}

/** The least MTU, and the subnets that the node reaches others in without a router. */
function deviceFacts(decisions: readonly Decision[]): Facts {
  const devices = nodeDevices(decisions).map(({ iface }) => iface)
  if (devices.length === 0) return {}
  const addresses = devices.flatMap((one) => one.addresses).filter(({ scope }) => scope === SCOPE_GLOBAL)
  const subnets = new Set(addresses.map(({ addr, bits }) => formatCidr({ addr: maskAddr(addr, bits), bits })))
  return {
    mtu: String(Math.min(...devices.map(({ mtu }) => mtu))),
    ...(subnets.size === 0 ? {} : { subnets: [...subnets].slice(0, MOST_SUBNETS).join() }),
  }
}

/** What an agent would do with the devices of this node. */
export function decideHere({ addresses }: Pick<PreflightOptions, 'addresses'>): Decision[] {
  return decide(listInterfaces(), waysOf(), { addresses })
}

export function decide(interfaces: Interfaces, ways: RouteLookup, { addresses }: Pick<PreflightOptions, 'addresses'>): Decision[] {
  const own = addresses.flatMap((text) => tryParseAddr(text) ?? [])
  const { dataInterfacePattern: pattern, excludedInterfaces: excluded } = defaultConfig.compile
  const host = { addresses: own.length > 0 ? own : addressesOfDefaults(interfaces, ways), elsewhere: [], pattern, excluded }
  return decideDevices({ workloads: [], host }, interfaces, { ways, veths: new Set() })
}

function addressesOfDefaults(interfaces: Interfaces, { defaults }: RouteLookup): Addr[] {
  return interfaces.all().flatMap(({ index, addresses }) => (defaults.includes(index) ? addresses.map(({ addr }) => addr) : []))
}

function waysOf(): RouteLookup {
  const socket = NetlinkSocket.open({ protocol: NETLINK_ROUTE })
  try {
    return routeLookupOf(
      listRoutes(new NetlinkExchange(socket)).filter(({ table }) => table === MAIN_TABLE),
      [],
    )
  } finally {
    socket.close()
  }
}

/** Those that carry the node's addresses; where none is known all with programs. */
function nodeDevices(decisions: readonly Decision[]): readonly Decision[] {
  const vital = decisions.filter(({ vital: isVital }) => isVital)
  return vital.length > 0 ? vital : decisions.filter(({ use }) => use === 'host')
}

/** The node is of no use without the devices of its addresses; on others it has no services and no policy. */
export function kindFindings({ iface, use, reason, vital }: Decision): Finding[] {
  if (use !== 'refused') return []
  const why = /\((.*)\)$/.exec(reason)?.[1] ?? reason
  if (iface.kind === 'vlan') return [finding(vital ? 'node-device-vlan' : 'device-vlan', iface.name, why)]
  return [finding(vital ? 'node-device-kind' : 'device-kind', iface.name, why)]
}

/** `wanted`: the MTU that pods are given; undefined: what is left to them. */
export function mtuFindings(decisions: readonly Decision[], wanted: number | undefined): Finding[] {
  return nodeDevices(decisions).flatMap(({ iface }) => {
    const tunnel = iface.addresses.some(({ addr }) => isV4(addr)) ? TUNNEL_BYTES.v4 : TUNNEL_BYTES.v6
    if (wanted !== undefined && iface.mtu < wanted + tunnel) return [finding('mtu-exceeded', iface.name, iface.mtu, wanted)]
    const least = LEAST_POD_MTU + tunnel
    return iface.mtu < least ? [finding('mtu-small', iface.name, iface.mtu, least)] : []
  })
}

/** `table`: the text of /proc/net/ip_vs; undefined: the kernel has no IPVS. */
export function ipvsFindings(interfaces: Interfaces, table: string | undefined): Finding[] {
  const services = (table ?? '').match(/^(TCP|UDP|SCTP|FWM) /gm)?.length ?? 0
  const device = interfaces.byName(IPVS_DEVICE)
  return [
    ...(device === undefined
      ? []
      : [finding('ipvs-device', IPVS_DEVICE, device.addresses.filter(({ scope }) => scope === SCOPE_GLOBAL).length)]),
    ...(services === 0 ? [] : [finding('ipvs-services', services)]),
  ]
}

function ipvsTable(): string | undefined {
  try {
    return readFileSync('/proc/net/ip_vs', 'utf8')
  } catch {
    return undefined
  }
}

function foreignDeviceFindings(interfaces: Interfaces): Finding[] {
  const names = (devices: readonly Interface[]): string => {
    const first = devices.slice(0, 3).map(({ name }) => name)
    return devices.length > 3 ? `${first.join(', ')} and ${devices.length - 3} more` : first.join(', ')
  }
  return [...foreignDevices(interfaces.all())].map(([owner, devices]) => finding('foreign-device', owner, names(devices)))
}
