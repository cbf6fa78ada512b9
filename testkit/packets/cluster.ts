// SPDX-License-Identifier: Apache-2.0
/** The small cluster that packet cases speak of, once for each family, as seen from node one. Layer: testkit. */

export interface Family {
  readonly name: 'IPv4' | 'IPv6'
  readonly v4: boolean
  /** outside, on the underlay; in the set of those whose answers come back through the tunnel */
  readonly client: string
  /** the same, but answered by the backend's node */
  readonly directClient: string
  /** outside, and there is no route to it */
  readonly lost: string
  /** this node */
  readonly node: string
  /** this node's as well, without node ports */
  readonly quietOwn: string
  /** this node's, of a prefix that its kernel takes for the node as a whole: no row has it */
  readonly prefixOwn: string
  readonly otherNode: string
  readonly thirdNode: string
  /** nodes whose addresses are like otherNode's: half of the last byte's range apart; or the same XOR of its 16-bit
   * words */
  readonly alikeNodes: readonly string[]
  /** on the underlay, but no node of ours */
  readonly stranger: string
  readonly pod: string
  readonly secondPod: string
  /** a pod whose address means nothing outside */
  readonly maskedPod: string
  /** a pod of another plugin */
  readonly routedPod: string
  /** a pod behind another device than packets of these cases come from */
  readonly elsewherePod: string
  /** on the other node, and the network between the nodes does not know it */
  readonly overlayPod: string
  /** on the other node */
  readonly remotePod: string
  readonly vip: string
  /** a service's address without the port asked for */
  readonly bareVip: string
  readonly gateway: string
  readonly loopback: string
}

/** Packets' marks, of bpf/include/base/mark.h */
export const DECIDED = 0x01000000
export const TRANSLATED = 0x02000000
/** given to the kernel as it came from a pod */
export const ASKED = 0x04000000

export const families: readonly Family[] = [
  {
    name: 'IPv4',
    v4: true,
    client: '192.168.50.100',
    directClient: '192.168.50.101',
    lost: '203.0.113.9',
    node: '192.168.50.1',
    quietOwn: '192.168.50.11',
    prefixOwn: '10.9.0.7',
    otherNode: '192.168.50.2',
    thirdNode: '192.168.50.3',
    alikeNodes: ['192.168.50.130', '192.169.50.3'],
    stranger: '192.168.50.66',
    pod: '10.10.1.5',
    secondPod: '10.10.1.6',
    maskedPod: '10.10.1.7',
    routedPod: '10.10.1.8',
    elsewherePod: '10.10.1.9',
    overlayPod: '10.10.3.5',
    remotePod: '10.10.2.5',
    vip: '10.96.0.10',
    bareVip: '10.96.0.11',
    gateway: '169.254.1.1',
    loopback: '127.0.0.1',
  },
  {
    name: 'IPv6',
    v4: false,
    client: 'fd00:50::100',
    directClient: 'fd00:50::101',
    lost: '2001:db8::9',
    node: 'fd00:50::1',
    quietOwn: 'fd00:50::11',
    prefixOwn: 'fd00:9::7',
    otherNode: 'fd00:50::2',
    thirdNode: 'fd00:50::3',
    alikeNodes: ['fd00:50::82', 'fd00:50::2:0'],
    stranger: 'fd00:50::66',
    pod: 'fd00:10:1::5',
    secondPod: 'fd00:10:1::6',
    maskedPod: 'fd00:10:1::7',
    routedPod: 'fd00:10:1::8',
    elsewherePod: 'fd00:10:1::9',
    overlayPod: 'fd00:10:3::5',
    remotePod: 'fd00:10:2::5',
    vip: 'fd00:96::10',
    bareVip: 'fd00:96::11',
    gateway: 'fe80::1',
    loopback: '::1',
  },
]

export const VNI = 0x4e50
/** longer than a flow goes without a closer look, ms */
export const A_WHILE = 3_000
/** the one port for flows that need another than their own */
export const NAT_PORT = 20_000
export const NODE_PORT = 30080
/** clusterIP:80 and node port 30080; the backends differ from case to case */
export const WEB = '00000000000000aa'

/** 'addr:port' with brackets where IPv6 needs them */
export function at(addr: string, port: number): string {
  return addr.includes(':') ? `[${addr}]:${port}` : `${addr}:${port}`
}

/** Interfaces of the namespace the cases run in: made by setUpNamespace(). MACs of neighbours are fixed. */
export const ownPrefixes = ['10.9.0.0/24', 'fd00:9::/64']

export const devices = {
  underlay: { name: 'eth0', mac: '02:00:00:00:50:01', mtu: 1500 },
  pod: { name: 'npl0', mac: '02:00:00:00:10:01', mtu: 1500 },
  secondPod: { name: 'npl1', mac: '02:00:00:00:10:02', mtu: 1500 },
}
export const neighbourMac = '02:00:00:00:99:99'

/** `ip` command lines that make the namespace. */
export function namespaceCommands(): string[] {
  const lines = ['link set lo up', ...ownPrefixes.map((prefix) => `route replace local ${prefix} dev lo`)]
  for (const device of Object.values(devices)) {
    lines.push(`link add ${device.name} address ${device.mac} mtu ${device.mtu} type veth peer name ${device.name}p`)
    lines.push(`link set ${device.name}p up`, `link set ${device.name} up`)
  }
  for (const f of families) {
    const bits = f.v4 ? 24 : 64
    lines.push(`addr add ${f.node}/${bits} dev eth0${f.v4 ? '' : ' nodad'}`)
    for (const peer of [f.client, f.directClient, f.otherNode, f.thirdNode, f.stranger])
      lines.push(`neigh replace ${peer} lladdr ${neighbourMac} dev eth0 nud permanent`)
    for (const addr of [f.remotePod, ...f.alikeNodes]) lines.push(`route add ${addr}/${f.v4 ? 32 : 128} via ${f.otherNode} dev eth0`)
    // reachable, but without a neighbour entry
    lines.push(`route add ${f.elsewherePod}/${f.v4 ? 32 : 128} dev npl0`)
    for (const [addr, device] of [
      [f.pod, 'npl0'],
      [f.secondPod, 'npl1'],
      [f.maskedPod, 'npl0'],
      [f.routedPod, 'npl0'],
    ] as const) {
      lines.push(
        `route add ${addr}/${f.v4 ? 32 : 128} dev ${device}`,
        `neigh replace ${addr} lladdr ${neighbourMac} dev ${device} nud permanent`,
      )
    }
  }
  return lines
}

export const namespaceSysctls: Readonly<Record<string, string>> = {
  'net/ipv4/ip_forward': '1',
  'net/ipv6/conf/all/forwarding': '1',
}
