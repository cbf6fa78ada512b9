// SPDX-License-Identifier: Apache-2.0
/** Which interfaces get programs, and what the programs have to know of the node's interfaces. Layer: agent/dataplane (pure). */
import type { Interface, Interfaces } from '#agent/interfaces/table.ts'
import type { DesiredNode } from '#agent/compile/desired.ts'
import { SCOPE_GLOBAL } from '#agent/interfaces/netlink/addr.ts'
import { isV4, type Addr } from '#lib/base/ip.ts'

/** A pod's veth, or a device to the world outside this node. */
export interface Device {
  readonly kind: 'workload' | 'host'
  readonly iface: Interface
}

/** Interfaces that hold service addresses of kube-proxy's IPVS mode: none of them is this node's own. */
const FOREIGN_SERVICE_DEVICE = 'kube-ipvs0'
const OUR_VETH = /^npl[0-9a-f]{11}$/

/** Devices to attach to, sorted by index. A pod's veth never counts as a host device, even if its name or address fits. */
export function chooseDevices(node: Pick<DesiredNode, 'workloads' | 'host'>, interfaces: Interfaces): Device[] {
  const workloads = new Set(node.workloads.map((workload) => workload.iface))
  const addresses = new Set<Addr>(node.host.addresses)
  const pattern = node.host.pattern === undefined ? undefined : new RegExp(node.host.pattern)
  const devices: Device[] = []
  for (const iface of interfaces.all()) {
    if (workloads.has(iface.name)) devices.push({ kind: 'workload', iface })
    else if (iface.loopback || OUR_VETH.test(iface.name)) continue
    else if (iface.addresses.some((one) => addresses.has(one.addr)) || pattern?.test(iface.name) === true)
      devices.push({ kind: 'host', iface })
  }
  return devices
}

/** Settings of devices with programs, and of the loopback device. Translated packets that the kernel is to route on may have a source of
 * the node's own, also on the loopback device, where those go that a process of the node sent to a service and another of its processes
 * is to have. Reverse path filtering is off on pods' veths: such a device has no address, so that even loose filtering refuses what comes
 * from a service's address, as answers to the node's own processes do. That of host devices is their administrator's. */
export function deviceSysctls(devices: readonly Device[], interfaces: Interfaces): Record<string, string> {
  const settings: Record<string, string> = {}
  const set = (iface: Interface, name: string, value: string): void => {
    settings[`net/ipv4/conf/${iface.name}/${name}`] = value
  }
  for (const iface of interfaces.all()) if (iface.loopback) set(iface, 'accept_local', '1')
  for (const { kind, iface } of devices) {
    set(iface, 'accept_local', '1')
    if (kind === 'workload') set(iface, 'rp_filter', '0')
  }
  return settings
}

/** Every address the node answers on: those of global scope that are not link-local, sorted and distinct. */
export function selfAddresses(interfaces: Interfaces): Addr[] {
  const found = new Set<Addr>()
  for (const iface of interfaces.all()) {
    if (!iface.up || iface.name === FOREIGN_SERVICE_DEVICE) continue
    for (const { addr, scope } of iface.addresses) if (scope === SCOPE_GLOBAL && !isLocalOnly(addr)) found.add(addr)
  }
  return [...found].sort()
}

/** Loopback and link-local addresses, whatever scope somebody gave them. */
function isLocalOnly(addr: Addr): boolean {
  const at = isV4(addr) ? 12 : 0
  const [first, second] = [addr.charCodeAt(at), addr.charCodeAt(at + 1)]
  if (isV4(addr)) return first === 127 || (first === 169 && second === 254)
  return (first === 0xfe && (second & 0xc0) === 0x80) || /^\0{15}\x01$/.test(addr)
}
