// SPDX-License-Identifier: Apache-2.0
/** An overlay without us: the kernel's VXLAN device on every node, with entries for the others added by hand.
 * Layer: bench. */
import type { Lab } from '../../lab/lab.ts'
import { NODES } from './manifests.ts'

export const KERNEL_VXLAN = 'vxlan0'
/** what it puts around a packet of IPv4 */
export const VXLAN_BYTES = 50

interface Tunnel {
  readonly name: string
  readonly address: string
  readonly pods: readonly string[]
  /** of the device: address and MAC */
  readonly inner: string
  readonly mac: string
}

/** In a lab without agents: pods of other nodes by the device instead of by the nodes. */
export async function serveByKernelVxlan(lab: Lab): Promise<void> {
  const tunnels = NODES.map(({ name, address, pods, podCidr }, at): Tunnel => ({
    name,
    address,
    pods,
    inner: podCidr.split('/')[0] ?? '',
    mac: `02:00:00:00:00:0${at + 1}`,
  }))
  for (const self of tunnels) {
    const others = tunnels.filter((other) => other !== self)
    await lab.mustRun(`node/${self.name}`, ['sh', '-e'], { input: [...deviceLines(self), ...others.flatMap(routeLines)].join('\n') })
  }
}

function deviceLines({ address, inner, mac }: Tunnel): string[] {
  return [
    `ip link add ${KERNEL_VXLAN} address ${mac} type vxlan id 4096 local ${address} dev eth0 dstport 4789 nolearning`,
    `ip addr add ${inner}/32 dev ${KERNEL_VXLAN}`,
    `ip link set ${KERNEL_VXLAN} up`,
  ]
}

function routeLines({ address, inner, mac, pods }: Tunnel): string[] {
  return [
    `ip neigh replace ${inner} lladdr ${mac} dev ${KERNEL_VXLAN} nud permanent`,
    `bridge fdb replace ${mac} dev ${KERNEL_VXLAN} dst ${address}`,
    ...pods.map((pod) => `ip route replace ${pod}/32 via ${inner} dev ${KERNEL_VXLAN} onlink`),
  ]
}
