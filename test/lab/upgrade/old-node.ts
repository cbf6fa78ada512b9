// SPDX-License-Identifier: Apache-2.0
/** Nodes as an older version left them, made by script: its program is not to be had. Layer: test. */
import type { Lab } from '../../../lab/lab.ts'
import { PLAIN_PROTOCOL } from '../../../lab/network/setup.ts'
import { oldRules } from '../../support/old-rules.ts'

/** Of every device of a pod, at the node's end. */
const MAC = 'ee:ee:ee:ee:ee:ee'
/** The kernel makes it of that. */
const GATEWAY_V6 = 'fe80::ecee:eeff:feee:eeee'

/** How pods of other nodes are reached: by nodes' addresses, in the tunnel of that version, or in flannel's, which
 * stays. */
export type Between = 'plain' | 'tunnel' | 'flannel'

/** Of IPv4 and of IPv6. */
const TUNNELS = {
  own: { names: ['vxlan.netplane', 'vxlan-v6.npl'], id: 4096, port: 4789, proto: 'proto 80' },
  flannel: { names: ['flannel.1', 'flannel-v6.1'], id: 1, port: 8472, proto: '' },
} as const

export interface OldNode {
  readonly name: string
  /** its own, ranges of its pods, and hardware addresses of its tunnels, by family */
  readonly addresses: readonly string[]
  readonly own: readonly string[]
  readonly macs: readonly string[]
  /** ranges of the other node, with that node's addresses, and those of its tunnels */
  readonly other: readonly (readonly [range: string, via: string, mac: string])[]
}

/** TCP port of their node that the policy of that time kept from pods. */
export const DENIED_PORT = 8080

/** Devices, routes, sysctls and chains; files of that version. Pods keep what they have open. */
export async function makeOld(lab: Lab, { name, addresses: locals, own, macs, other }: OldNode, between: Between): Promise<void> {
  const pods = lab.topology.pods.filter(({ node, hostNetwork }) => node === name && !hostNetwork)
  const at = `node/${name}`
  const devices = pods.flatMap(({ iface, addresses }) => [
    `ip link set ${iface} address ${MAC}`,
    `ip addr add ${GATEWAY_V6}/64 dev ${iface} nodad scope link`,
    `sysctl -qw net.ipv4.conf.${iface}.proxy_arp=1 net.ipv4.conf.${iface}.rp_filter=1 net.ipv6.conf.${iface}.proxy_ndp=1`,
    ...addresses.map((address) => `ip route replace ${address} dev ${iface} proto boot${address.includes(':') ? '' : ' scope link'}`),
  ])
  const routes = [
    `ip route flush proto ${PLAIN_PROTOCOL}; ip -6 route flush proto ${PLAIN_PROTOCOL}`,
    ...own.map((range) => `ip route add blackhole ${range} proto 80`),
    ...(between !== 'plain' ? [] : other.map(([range, via]) => `ip route add ${range} via ${via} dev eth0 proto 80`)),
  ]
  // a node that is gone was reached by it
  const gone = [
    ['10.245.9.0/26', '172.31.0.9', '66:00:00:00:00:09'],
    ['fd00:245:9::/122', 'fd00:31::9', '66:00:00:00:00:09'],
  ] as const
  const { names, id, port, proto } = TUNNELS[between === 'flannel' ? 'flannel' : 'own']
  const tunnel = names.flatMap((device, at) => [
    `ip link add ${device} address ${macs[at] ?? ''} mtu 1430 type vxlan id ${id} dstport ${port} nolearning local ${locals[at] ?? ''} dev eth0${at === 0 ? '' : ' udp6zerocsumrx'}`,
    `ip link set ${device} up`,
    // what the node itself sends to pods of others has it
    `ip addr add ${(own[at] ?? '').replace(/\/.*/, at === 0 ? '/32' : '/128')} dev ${device}${at === 0 ? '' : ' nodad'}`,
    ...[...(between === 'plain' ? [] : [other[at] ?? []]), gone[at] ?? []].flatMap(([range = '', via = '', mac = '']) => {
      const end = range.replace(/\/.*/, '')
      return [
        `ip neigh replace ${end} lladdr ${mac} dev ${device} nud permanent`,
        `bridge fdb replace ${mac} dev ${device} dst ${via} self`,
        `ip route add ${range} via ${end} dev ${device} onlink ${proto}`,
      ]
    }),
  ])
  await lab.mustRun(at, ['sh', '-ec', [...devices, ...routes, ...tunnel].join('\n')])
  for (const pod of pods)
    await lab.mustRun(pod.key, [
      'sh',
      '-ec',
      [
        // the node answers for the gateway, as it is asked
        'ip neigh del 169.254.1.1 dev eth0',
        'ip neigh del fe80::1 dev eth0',
        `ip -6 route replace default via ${GATEWAY_V6} dev eth0`,
      ].join('\n'),
    ])
  const ifaces = pods.map(({ iface }) => iface)
  for (const [tool, range, tunnel] of [
    ['iptables', '10.245.0.0/16', names[0]],
    ['ip6tables', 'fd00:245::/32', names[1]],
  ] as const)
    await lab.mustRun(at, [`${tool}-nft-restore`, '--noflush'], {
      input: oldRules({ ifaces, deniedPort: DENIED_PORT, pods: range, tunnel }),
    })
}

/** What of it is there, a line each. */
export async function leftOn(lab: Lab, name: string): Promise<string> {
  const looks = [
    '{ iptables-nft-save; ip6tables-nft-save; } | grep -E "npl[-:]"',
    'ip -br link show type vxlan | grep -vE "^(netplane-vxlan|vxlan-v6.npl|flannel.*) "',
    'ip route show type blackhole; ip -6 route show type blackhole proto 80',
    'ip route show proto 80 | grep vxlan; ip -6 route show proto 80 | grep vxlan',
  ]
  return await lab.mustRun(`node/${name}`, ['sh', '-c', `${looks.join('; ')}; true`])
}
