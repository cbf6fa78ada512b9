// SPDX-License-Identifier: Apache-2.0
/** Which service a flow's sender meant. Layer: agent/flows (pure). */
import { protocolNumber, type Addr } from '#lib/base/ip.ts'
import { NONE, type FlowService } from '#lib/flows/flow.ts'
import type { Service } from '#lib/model/service.ts'
import type { ObjectChange, Snapshot } from '#lib/model/snapshot.ts'

interface Destination {
  readonly addr: Addr
  readonly port: number
  readonly proto: number
}

/** By what packets are sent to, before translation. */
export class MeantServices {
  /** by address, the last one first */
  #services = new Map<Addr, Service[]>()
  /** of those that flows were sent to: ports times addresses of all would be too many */
  #ports = new WeakMap<Service, ReadonlyMap<number, FlowService>>()
  /** by port and protocol, at any address of a node */
  #nodePorts = new Map<number, FlowService>()

  /** changed since they were indexed last */
  #fresh: Pick<Snapshot, 'services'> | undefined

  /** What there is, and what changed of it: undefined the first time. */
  note(world: Pick<Snapshot, 'services'>, changes: readonly ObjectChange[] | undefined): void {
    if (changes?.some(({ kind }) => kind === 'Service') !== false) this.#fresh = world
  }

  /** `isNodes`: a node has the address. */
  find({ addr, port, proto }: Destination, isNodes: boolean): FlowService | undefined {
    if (this.#fresh !== undefined) this.#index(this.#fresh)
    for (const service of this.#services.get(addr) ?? []) {
      const meant = this.#portsOf(service).get(portKey(port, proto))
      if (meant !== undefined) return meant
    }
    return isNodes ? this.#nodePorts.get(portKey(port, proto)) : undefined
  }

  #portsOf(service: Service): ReadonlyMap<number, FlowService> {
    const known = this.#ports.get(service) ?? portsOf(service)
    this.#ports.set(service, known)
    return known
  }

  #index({ services }: Pick<Snapshot, 'services'>): void {
    this.#services = new Map()
    for (const service of [...services.values()].reverse())
      for (const addr of new Set([...service.clusterIPs, ...service.externalIPs, ...service.loadBalancerIPs])) {
        const known = this.#services.get(addr)
        if (known === undefined) this.#services.set(addr, [service])
        else known.push(service)
      }
    this.#nodePorts = new Map([...services.values()].flatMap(nodePortsOf))
    this.#fresh = undefined
  }
}

function portsOf(service: Service): ReadonlyMap<number, FlowService> {
  return new Map(service.ports.map(({ name, port, protocol }) => [portKey(port, protocolNumber(protocol)), meant(service, name, port)]))
}

function nodePortsOf(service: Service): readonly (readonly [number, FlowService])[] {
  return service.ports.flatMap(({ name, port, nodePort, protocol }) =>
    nodePort === undefined ? [] : [[portKey(nodePort, protocolNumber(protocol)), meant(service, name, port)] as const],
  )
}

function meant({ namespace, name }: Service, portName: string, port: number): FlowService {
  return { namespace, name, portName: portName === '' ? NONE : portName, port }
}

function portKey(port: number, proto: number): number {
  return port * 256 + proto
}
