// SPDX-License-Identifier: Apache-2.0
/** What a preflight finds on two nodes, and how it says so. Layer: test. */
import type { Cluster } from '../../../testkit/kubernetes/cluster.ts'

const OTHER_NETWORK = '/etc/cni/net.d/05-other.conflist'
const PINS = '/sys/fs/bpf/cilium'

/** Of what a preflight has: it is there before agents are. */
export const LOOKING = [
  ...['ClusterRole netplane-preflight', 'ClusterRoleBinding netplane-preflight', 'ConfigMap netplane-system/netplane-preflight'],
  ...['DaemonSet netplane-system/netplane-preflight', 'Namespace netplane-system'],
  ...['RoleBinding netplane-system/netplane-operator-secrets', 'ServiceAccount netplane-system/netplane-preflight'],
]

const carry = 'let the network between the nodes carry UDP port 4789 both ways'
const lost = (way: string, addresses: string): string => `${way} is lost (UDP port 4789 of ${addresses})`

/** Of all that {@link putInTheWay} puts there. */
export const FINDINGS = [
  `a: ${lost('VXLAN from here to b', '172.31.0.12, fd00:31::12')}, and back it arrives; ${carry}`,
  'b: the network configuration 05-other.conflist comes before ours by name: runtimes would pass over us; delete it with the plugin that it belongs to, or set spec.cni.type of the Installation to Chained',
  `b: ${lost('VXLAN from a to here', '172.31.0.11, fd00:31::11')}; ${carry}`,
  'warning: a: pins of Cilium are there: /sys/fs/bpf/cilium; remove Cilium, then delete them or restart the node',
]

/** A network that loses, another plugin's configuration, and pins of Cilium. Returns what takes it all away. */
export async function putInTheWay(cluster: Cluster): Promise<() => Promise<void>> {
  const { lab } = cluster
  const [port = ''] = lab.topology.nodes.map((node) => node.port)
  await nft(
    cluster,
    'fabric',
    `table netdev loss { chain in { type filter hook ingress device "${port}" priority 0; udp dport 4789 drop; }; }`,
  )
  await lab.mustRun('node/b', ['tee', OTHER_NETWORK], { input: '{"cniVersion":"0.4.0","name":"other","plugins":[{"type":"bridge"}]}' })
  await lab.mustRun('node/a', ['mkdir', PINS])
  return async () => {
    await nft(cluster, 'fabric', 'delete table netdev loss')
    await lab.mustRun('node/b', ['rm', OTHER_NETWORK])
    await lab.mustRun('node/a', ['rmdir', PINS])
  }
}

export async function nft(cluster: Cluster, place: 'fabric' | 'node/b', text: string): Promise<void> {
  await cluster.lab.mustRun(place, ['nft', '-f', '-'], { input: text })
}
