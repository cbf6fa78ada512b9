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
  /** by address, port and protocol */
  #frontends = new Map<string, FlowService>()
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
    return this.#frontends.get(frontendKey(addr, port, proto)) ?? (isNodes ? this.#nodePorts.get(port * 256 + proto) : undefined)
  }

  #index({ services }: Pick<Snapshot, 'services'>): void {
    this.#frontends = new Map([...services.values()].flatMap(frontendsOf))
    this.#nodePorts = new Map([...services.values()].flatMap(nodePortsOf))
    this.#fresh = undefined
  }
}

function frontendsOf(service: Service): readonly (readonly [string, FlowService])[] {
  const addrs = [...service.clusterIPs, ...service.externalIPs, ...service.loadBalancerIPs]
  return service.ports.flatMap((port) =>
    addrs.map((addr) => [frontendKey(addr, port.port, protocolNumber(port.protocol)), meant(service, port.name, port.port)] as const),
  )
}

function nodePortsOf(service: Service): readonly (readonly [number, FlowService])[] {
  return service.ports.flatMap(({ name, port, nodePort, protocol }) =>
    nodePort === undefined ? [] : [[nodePort * 256 + protocolNumber(protocol), meant(service, name, port)] as const],
  )
}

function meant({ namespace, name }: Service, portName: string, port: number): FlowService {
  return { namespace, name, portName: portName === '' ? NONE : portName, port }
}

function frontendKey(addr: Addr, port: number, proto: number): string {
  return addr + String.fromCharCode(port, proto)
}
