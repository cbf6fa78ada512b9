// SPDX-License-Identifier: Apache-2.0
/** By what other data planes are known on a node. Layer: agent (pure). */
import type { Interface } from '../interfaces/table.ts'

export interface DataPlane {
  readonly name: string
  readonly devices: RegExp
  /** below /sys/fs/bpf */
  readonly pins?: RegExp
  /** names of programs, of which the kernel keeps 15 characters */
  readonly programs?: RegExp
}

export const DATA_PLANES: readonly DataPlane[] = [
  {
    name: 'Cilium',
    devices: /^(cilium_\w+|lxc\w+)$/,
    pins: /^(cilium|tc\/globals\/cilium_\w*)$/,
    // the last are those of versions before 1.12
    programs: /^cil_|^sock[46]_|^(from|to)_(netdev|overlay|container)$/,
  },
  {
    name: 'Calico',
    devices: /^(vxlan(-v6)?\.calico|cali[0-9a-f]{11}|bpfin\.cali|bpfout\.cali|wireguard\.cali|wg-v6\.cali)$/,
    pins: /^(calico|calico-tc|tc\/globals\/cali_\w*)$/,
    programs: /^cali(co)?_/,
  },
  { name: 'flannel', devices: /^flannel([.-][\w.]+)?$/ },
  { name: 'the bridge plugin', devices: /^(cni0|cbr0)$/ },
  { name: 'Weave Net', devices: /^(weave|vethwe-\w+|vxlan-6784)$/ },
  { name: 'Antrea', devices: /^antrea-\w+$/, programs: /^antrea_/ },
  { name: 'OVN', devices: /^(ovn-k8s-mp\d+|ovs-system|br-int|genev_sys_\d+)$/ },
  { name: 'kube-router', devices: /^(kube-bridge|kube-dummy-if)$/ },
]

/** The kernel makes it as soon as its module is loaded: it says something once it has an address. */
const IPIP_DEVICE = 'tunl0'

/** By data plane those that are there. */
export function foreignDevices(devices: readonly Interface[]): ReadonlyMap<string, readonly Interface[]> {
  const ownerOf = ({ name, addresses }: Interface): string | undefined => {
    if (name === IPIP_DEVICE) return addresses.length > 0 ? 'an IP-in-IP tunnel' : undefined
    return DATA_PLANES.find((one) => one.devices.test(name))?.name
  }
  const found = Map.groupBy(devices, (device) => ownerOf(device) ?? '')
  found.delete('')
  return found
}

/** undefined: of none that is known */
export function ownerOfProgram(name: string): string | undefined {
  return DATA_PLANES.find(({ programs }) => programs?.test(name) === true)?.name
}

/** `path`: below the BPF file system */
export function ownerOfPin(path: string): string | undefined {
  return DATA_PLANES.find(({ pins }) => pins?.test(path) === true)?.name
}
