// SPDX-License-Identifier: Apache-2.0
/** The cluster of a real kube-proxy's saved rules: its objects, the rules, and ways to its services. Layer: test. */
import { readFileSync } from 'node:fs'
import type { Endpoint } from '../../lab/tools/address.ts'
import { node, pod } from './cluster.ts'

const fixture = (name: string): string => readFileSync(new URL(`../agent/dataplane/kube-proxy/${name}`, import.meta.url), 'utf8')

/** The cluster of the saved rules: two services, by cluster address and, the second, by the node port of its only
 * local endpoint. */
const PODS = [
  pod('default/shell-a', 'a', '10.245.1.20', 'fd00:245:1::20'),
  pod('default/shell-b', 'b', '10.245.2.20', 'fd00:245:2::20'),
  pod('default/plain-a', 'a', '10.245.1.11', 'fd00:245:1::11'),
  pod('default/plain-b', 'b', '10.245.2.11', 'fd00:245:2::11'),
  pod('default/balanced-a', 'a', '10.245.1.12', 'fd00:245:1::12'),
  pod('default/balanced-b', 'b', '10.245.2.12', 'fd00:245:2::12'),
]
export const OBJECTS = [
  { ...node('a', '172.31.0.1', 'fd00:31::1'), spec: { podCIDRs: ['10.245.1.0/24', 'fd00:245:1::/64'] } },
  { ...node('b', '172.31.0.2', 'fd00:31::2'), spec: { podCIDRs: ['10.245.2.0/24', 'fd00:245:2::/64'] } },
  ...PODS,
  ...service('plain', 11, {}),
  ...service('balanced', 12, { type: 'NodePort', externalTrafficPolicy: 'Local', nodePort: 32462 }),
]

interface ServiceSpec {
  readonly nodePort?: number
  readonly type?: string
  readonly externalTrafficPolicy?: string
  readonly protocol?: string
  /** how addresses of its pods end; default: as its own */
  readonly pods?: number
}

/** Of a pod on each node. `last`: how its addresses end. */
export function service(name: string, last: number, more: ServiceSpec): object[] {
  const { nodePort, protocol = 'TCP', pods = last, ...spec } = more
  const clusterIPs = [`10.97.0.${last}`, `fd00:97::${last}`]
  const ports = [{ name: 'p', protocol, port: 80, targetPort: 8080, ...(nodePort === undefined ? {} : { nodePort }) }]
  const metadata = { name, namespace: 'default' }
  const slices = ['IPv4', 'IPv6'].map((addressType) => ({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: `${name}-${addressType.toLowerCase()}`, namespace: 'default', labels: { 'kubernetes.io/service-name': name } },
    addressType,
    ports: [{ name: 'p', protocol, port: 8080 }],
    endpoints: [1, 2].map((at) => ({
      addresses: [addressType === 'IPv4' ? `10.245.${at}.${pods}` : `fd00:245:${at}::${pods}`],
      nodeName: at === 1 ? 'a' : 'b',
      conditions: { ready: true },
    })),
  }))
  return [{ apiVersion: 'v1', kind: 'Service', metadata, spec: { clusterIP: clusterIPs[0], clusterIPs, ports, ...spec } }, ...slices]
}

export const tcp = (address: string, port: number): Endpoint => ({ proto: 'tcp', address, port })
const CLUSTER = Array.from({ length: 6 }, () => [tcp('10.97.0.11', 80), tcp('fd00:97::11', 80)]).flat()

export interface Saved {
  /** whose rules they are */
  readonly on: 'a' | 'b'
  readonly restore: string
  readonly input: string
  /** prints what is left of them */
  readonly list: string
}

export interface Way {
  readonly from: string
  readonly to: readonly Endpoint[]
}

/** To either backend from inside, to the local one from outside. */
export function waysFrom(on: 'a' | 'b'): readonly Way[] {
  const last = on === 'a' ? 1 : 2
  return [
    { from: `shell-${on}`, to: CLUSTER },
    { from: `node/${on}`, to: CLUSTER },
    { from: 'client', to: [tcp(`172.31.0.${last}`, 32462), tcp(`fd00:31::${last}`, 32462)] },
  ]
}

/** What another kernel than that of the saved rules may lack: counters of accounting. */
export const RULES = {
  nft: iptables('nft'),
  legacy: iptables('legacy'),
  nftables: {
    on: 'b',
    restore: 'nft -f -',
    input: fixture('nftables.txt'),
    list: 'nft list tables | grep "kube-proxy$"',
  },
} as const satisfies Readonly<Record<string, Saved>>

function iptables(kind: string): Saved {
  const part = (tool: string, name: string): string => {
    const text = fixture(name).replaceAll(/ -m nfacct --nfacct-name +\S+/g, '')
    return `${tool}-${kind}-restore --noflush <<'RULES'\n${text}\nRULES\n`
  }
  const list = `{ iptables-${kind}-save; ip6tables-${kind}-save; } | grep KUBE- | grep -v KUBE-FIREWALL`
  return { on: 'a', restore: 'sh -e', input: part('iptables', 'iptables.txt') + part('ip6tables', 'ip6tables.txt'), list }
}
