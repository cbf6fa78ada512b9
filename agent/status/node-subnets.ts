// SPDX-License-Identifier: Apache-2.0
/** Prefixes in which this node reaches others without a router, announced on its Node: CrossSubnet asks for them. Layer: agent/status. */
import { formatCidr, maskAddr, type Addr, type Cidr } from '#lib/base/ip.ts'
import { compareText } from '#lib/base/order.ts'
import { same } from '#lib/base/same.ts'
import { SUBNETS_ANNOTATION, type Node } from '#lib/model/node.ts'
import type { Due, Subject } from './outbox.ts'
import { TIMEOUT_MS, type StatusApi } from './status-api.ts'

/** Until then what was written may not have been heard of. */
const HEARD_MS = 10_000

/** Of the node's addresses, as devices hold them, sorted: "192.0.2.0/24". Without the tunnel only what is on the same wire is reached. */
export function subnetsOf(addresses: readonly Addr[], held: readonly Cidr[]): readonly string[] {
  const own = held.filter(({ addr }) => addresses.includes(addr))
  return [...new Set(own.map(({ addr, bits }) => formatCidr({ addr: maskAddr(addr, bits), bits })))].sort(compareText)
}

function isV6(cidr: string): boolean {
  return cidr.includes(':')
}

export interface NodeSubnetsOptions {
  readonly api: Pick<StatusApi, 'patch'>
  readonly node: string
  /** undefined: it is not there, or not known yet */
  readonly self: () => Pick<Node, 'addresses' | 'subnets'> | undefined
  /** addresses of this node's devices with the lengths of their prefixes; undefined: not known yet */
  readonly held: () => readonly Cidr[] | undefined
}

export class NodeSubnets implements Subject {
  readonly name = 'subnets'
  readonly #options: NodeSubnetsOptions
  #said: readonly string[] = []
  #saidAt = -Infinity

  constructor(options: NodeSubnetsOptions) {
    this.#options = options
  }

  due(now: number): readonly Due[] {
    const [self, held] = [this.#options.self(), this.#options.held()]
    if (self === undefined || held === undefined) return []
    const announced = self.subnets.map(formatCidr).sort(compareText)
    const found = subnetsOf(self.addresses, held)
    // that no device has an address of a family, as while it changes, is no reason to forget
    const kept = announced.filter((one) => !found.some((other) => isV6(one) === isV6(other)))
    const wanted = [...found, ...kept].sort(compareText)
    if (same(wanted, announced)) return []
    if (same(wanted, this.#said) && now < this.#saidAt + HEARD_MS) return []
    return [{ key: this.#options.node, write: (signal) => this.#write(wanted, now, signal) }]
  }

  async #write(subnets: readonly string[], now: number, signal: AbortSignal): Promise<void> {
    const { api, node } = this.#options
    const patch = { metadata: { annotations: { [SUBNETS_ANNOTATION]: subnets.join(',') } } }
    await api.patch({ apiVersion: 'v1', kind: 'Node', name: node }, patch, { type: 'merge', signal, timeoutMs: TIMEOUT_MS })
    this.#said = subnets
    this.#saidAt = now
  }
}
