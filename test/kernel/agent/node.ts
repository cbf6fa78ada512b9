// SPDX-License-Identifier: Apache-2.0
/** A node for a whole agent, with one pod and one service, and what the agent leaves in its kernel. Layer: test. */
import { readdirSync } from 'node:fs'
import { BpfLink, BpfMap } from '#native'
import { errorCode } from '#lib/base/errors.ts'
import { workloadInterface } from '#lib/model/pod.ts'
import { ScratchNode } from '../../../testkit/base/scratch-node.ts'
import { felix, node, pod, service, slice } from './manifests.ts'

export const POD_A = workloadInterface({ namespace: 'default', name: 'a' }, 'npl')
export const POD_B = workloadInterface({ namespace: 'default', name: 'b' }, 'npl')
/** from the root of its files, see ScratchNode.path */
export const PINS = 'sys/fs/bpf/netplane'

/** With eth0, the pod a and the manifests for them. Forwards nothing yet, whatever the machine does that it is on. */
export async function makeNode(): Promise<ScratchNode> {
  const machine = await ScratchNode.make()
  machine.sh(`
    echo 0 > /proc/sys/net/ipv4/ip_forward
    echo 0 > /proc/sys/net/ipv6/conf/all/forwarding
    ip link add eth0 type veth peer name wire0
    ip addr add 192.0.2.1/24 dev eth0
    ip link set eth0 up
    ip link set wire0 up`)
  plug(machine, POD_A)
  machine.put('nodes.json', [node('n1', '192.0.2.1', '10.1.1.0/24'), node('n2', '192.0.2.2', '10.1.2.0/24')])
  machine.put('pods.json', [pod('a', '10.1.1.5')])
  machine.put('web.json', [service, slice('10.1.1.5')])
  machine.put('felix.json', [felix(machine.cgroup)])
  return machine
}

/** Makes a pod's veth; the pod's own end stays here. */
export function plug(machine: ScratchNode, iface: string): void {
  machine.sh(
    `ip link add ${iface} type veth peer name ${iface.replace('npl', 'p')}; ip link set ${iface} up; ip link set ${iface.replace('npl', 'p')} up`,
  )
}

/** "id program ifindex" of each link, by pin. */
export function links(machine: ScratchNode): Record<string, string> {
  const folder = machine.path(`${PINS}/links`)
  const entries = readdirSync(folder).flatMap((name): [string, string][] => {
    const link = open(`${folder}/${name}`)
    if (link === undefined) return []
    const { id, programId, ifindex } = link.info()
    link.close()
    return [[name, `${id} ${programId} ${ifindex}`]]
  })
  return Object.fromEntries(entries)
}

/** undefined when it has just gone */
function open(path: string): BpfLink | undefined {
  try {
    return BpfLink.openPin(path)
  } catch (thrown) {
    if (errorCode(thrown) === 'ENOENT') return undefined
    throw thrown
  }
}

/** How many rows a pinned map has. */
export async function rows(machine: ScratchNode, map: string): Promise<number> {
  const opened = BpfMap.openPin(machine.path(`${PINS}/maps/${map}`))
  const { count } = await opened.dump()
  opened.close()
  return count
}

/** Names of the pins of connect-time programs. */
export const CONNECT_PINS = [
  'connect4',
  'connect6',
  'getpeername4',
  'getpeername6',
  'recvmsg4',
  'recvmsg6',
  'sendmsg4',
  'sendmsg6',
  'sock_ops',
].map((hook) => `cgroup:${hook}`)

/** Names of the pins of these interfaces' links. */
export function hookPins(...ifaces: readonly string[]): string[] {
  return ifaces.flatMap((iface) => [`${iface}:egress`, `${iface}:ingress`])
}
