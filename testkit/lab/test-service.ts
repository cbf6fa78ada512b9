// SPDX-License-Identifier: Apache-2.0
/** A service of a test with its slices: what the API server and the endpoint controller would make, written whole at
 * each change. Layer: testkit. */
import type { Endpoint } from '../../lab/tools/address.ts'
import type { Cluster } from './cluster.ts'
import {
  addressOf,
  FAMILIES,
  PROTOS,
  sliceObjects,
  type EndpointSpec,
  type Family,
  type NodeName,
  type Proto,
  type SliceSpec,
} from './manifests.ts'

export interface PortSpec {
  readonly name: string
  readonly protocol: 'TCP' | 'UDP' | 'SCTP'
  readonly port: number
  /** of the pods */
  readonly targetPort: number | string
  /** false: none, also where the type has one; a number: this; otherwise one of the service's own */
  readonly nodePort?: number | false
}

export interface ServiceSpec {
  readonly type: 'ClusterIP' | 'NodePort' | 'LoadBalancer' | 'ExternalName'
  readonly ports: readonly PortSpec[]
  readonly families: readonly Family[]
  /** one slice a family, for all ports; `slices` go before */
  readonly endpoints: readonly EndpointSpec[]
  readonly slices: readonly SliceSpec[] | undefined
  readonly labels: Readonly<Record<string, string>>
  /** more of `spec` */
  readonly more: object
}

/** Port 80 by both protocols. */
export const BOTH_PROTOCOLS: readonly PortSpec[] = [
  { name: 'tcp', protocol: 'TCP', port: 80, targetPort: 8080 },
  { name: 'udp', protocol: 'UDP', port: 80, targetPort: 8080 },
]

const FIRST: ServiceSpec = {
  type: 'ClusterIP',
  ports: BOTH_PROTOCOLS,
  families: FAMILIES,
  endpoints: [],
  slices: undefined,
  labels: {},
  more: {},
}

export class TestService {
  readonly name: string
  readonly #cluster: Pick<Cluster, 'put' | 'remove'>
  readonly #index: number
  #spec = FIRST

  constructor(cluster: Pick<Cluster, 'put' | 'remove'>, index: number) {
    this.name = `s${index}`
    this.#cluster = cluster
    this.#index = index
  }

  /** Changes these fields, leaves the others as they were. */
  put(change: Partial<ServiceSpec>): void {
    this.#spec = { ...this.#spec, ...change }
    this.#cluster.put(this.name, [this.#service(), ...this.#slices()])
  }

  remove(): void {
    this.#cluster.remove(this.name)
  }

  address(family: Family): string {
    return family === 4 ? `10.96.0.${this.#index}` : `fd00:96::${this.#index}`
  }

  /** Owned by no node; a load balancer's or an external one. */
  outerAddress(family: Family): string {
    return family === 4 ? `203.0.113.${this.#index}` : `2001:db8:113::${this.#index}`
  }

  get nodePort(): number {
    return 30000 + 10 * this.#index
  }

  get healthCheckNodePort(): number {
    return 32000 + this.#index
  }

  at(family: Family, proto: Proto = 'tcp', port = 80): Endpoint {
    return { proto, address: this.address(family), port }
  }

  outer(family: Family, proto: Proto = 'tcp'): Endpoint {
    return { proto, address: this.outerAddress(family), port: 80 }
  }

  /** By the node port of the first port. */
  on(node: NodeName, family: Family, proto: Proto = 'tcp'): Endpoint {
    return { proto, address: addressOf(`node/${node}`, family), port: this.nodePort }
  }

  /** The cluster addresses with port 80, both families, both protocols. */
  get everywhere(): Endpoint[] {
    return FAMILIES.flatMap((family) => PROTOS.map((proto) => this.at(family, proto)))
  }

  /** The outer ones with port 80. */
  get outerEverywhere(): Endpoint[] {
    return FAMILIES.flatMap((family) => PROTOS.map((proto) => this.outer(family, proto)))
  }

  /** The same of a node. */
  onEvery(node: NodeName): Endpoint[] {
    return FAMILIES.flatMap((family) => PROTOS.map((proto) => this.on(node, family, proto)))
  }

  #service(): object {
    const { type, families, labels, more } = this.#spec
    const metadata = { name: this.name, namespace: 'default', labels }
    if (type === 'ExternalName')
      return { apiVersion: 'v1', kind: 'Service', metadata, spec: { type, externalName: 'example.com', ports: this.#ports() } }
    const clusterIPs = families.map((family) => this.address(family))
    const spec = {
      type,
      clusterIP: clusterIPs[0],
      clusterIPs,
      ipFamilies: families.map((family) => `IPv${family}`),
      ipFamilyPolicy: families.length === 2 ? 'RequireDualStack' : 'SingleStack',
      ports: this.#ports(),
      ...more,
    }
    const ingress = families.map((family) => ({ ip: this.outerAddress(family), ipMode: 'VIP' }))
    return { apiVersion: 'v1', kind: 'Service', metadata, spec, status: type === 'LoadBalancer' ? { loadBalancer: { ingress } } : {} }
  }

  /** Ports with one number have one node port. */
  #ports(): object[] {
    const { type, ports } = this.#spec
    const numbers = [...new Set(ports.map((port) => port.port))]
    return ports.map(({ nodePort, ...port }) => {
      const own = nodePort ?? this.nodePort + numbers.indexOf(port.port)
      return own === false || type === 'ClusterIP' || type === 'ExternalName' ? port : { ...port, nodePort: own }
    })
  }

  #slices(): object[] {
    const { slices, ports, endpoints, families, labels } = this.#spec
    const numbered = ports.flatMap(({ name, protocol, targetPort }) =>
      typeof targetPort === 'number' ? [{ name, protocol, port: targetPort }] : [],
    )
    const all = slices ?? [{ ports: numbered, endpoints }]
    return all.flatMap((slice, index) => sliceObjects(this.name, index, { families, ...slice, labels }))
  }
}
