// SPDX-License-Identifier: Apache-2.0
/** Ends of a flow as a node's maps know them: its own pods by name, everything else by address. Layer: cli (pure). */
import { ConfigError } from '#lib/base/errors.ts'
import { ADDR_LOCAL_POD, ADDR_SELF, IFACE_HOST } from '#lib/base/bpf-constants.ts'
import { formatAddr, isV4, type Addr } from '#lib/base/ip.ts'
import { NO_MAC } from '#lib/base/mac.ts'
import { workloadInterface } from '#lib/model/pod.ts'
import { catalogue } from '#agent/maps/catalogue.ts'
import type { EndName } from '../query.ts'
import { entriesOf, type Tables } from '../../map-tables.ts'
import { addressKind } from './own-address.ts'

export interface Devices {
  /** 0: there is none */
  readonly indexOf: (name: string) => number
  readonly nameOf: (index: number) => string
}

/** All addresses that are meant. Throws ConfigError. */
export async function addressesOf(end: EndName, tables: Tables, devices: Devices): Promise<readonly Addr[]> {
  switch (end.kind) {
    case 'address':
      return [end.addr]
    case 'service':
    case 'node':
      throw new ConfigError(end.text, 'maps do not have names of services and nodes: give its address, or ask with --resources')
    case 'pod': {
      const name = workloadInterface(end)
      const index = devices.indexOf(name)
      if (index === 0)
        throw new ConfigError(end.text, `is no pod of this node (it has no device ${name}): give its address, or ask with --resources`)
      const entries = await entriesOf(tables.open(catalogue.np_addrs))
      const addrs = entries.filter(([, { kind, ifindex }]) => kind === ADDR_LOCAL_POD && ifindex === index).map(([addr]) => addr)
      if (addrs.length === 0) throw new ConfigError(end.text, `the maps know no address of its device ${name}`)
      return addrs.sort((a, b) => Number(isV4(b)) - Number(isV4(a)))
    }
  }
}

export interface Source {
  readonly ifindex: number
  /** "from_workload" or "from_host" */
  readonly program: string
  readonly mac: string
}

/** By which device the packet of this address comes to the programs; `device`: of the network. Throws ConfigError. */
export async function sourceOf(
  src: Addr,
  tables: Tables,
  { devices, device }: { readonly devices: Devices; readonly device: string | undefined },
): Promise<Source> {
  if (addressKind(tables, src)?.kind === ADDR_SELF)
    throw new ConfigError(formatAddr(src), 'what the node itself sends does not begin at a program that can be run: ask with --resources')
  const info = tables.open(catalogue.np_addrs).get(src)
  const ifaces = tables.open(catalogue.np_ifaces)
  if (info?.kind === ADDR_LOCAL_POD)
    return { ifindex: info.ifindex, program: 'from_workload', mac: ifaces.get(info.ifindex)?.mac ?? NO_MAC }
  const hosts = (await entriesOf(ifaces)).filter(([, { kind }]) => kind === IFACE_HOST)
  const meant = device === undefined ? hosts : hosts.filter(([index]) => index === devices.indexOf(device))
  const [first, ...more] = meant
  if (first === undefined || more.length > 0) {
    const names = hosts.map(([index]) => devices.nameOf(index)).join(', ')
    throw new ConfigError('--interface', `which device does ${formatAddr(src)} come by? One of: ${names}`)
  }
  const [ifindex, { mac }] = first
  return { ifindex, program: 'from_host', mac }
}
