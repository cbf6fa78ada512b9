// SPDX-License-Identifier: Apache-2.0
/** This node's NodeNetwork: what the others have to know of it to reach its pods. Of Nodes each agent watches its own alone. Layer: agent/status. */
import { isV4, maskAddr, type Addr, type Cidr } from '#lib/base/ip.ts'
import { formatCidr } from '#lib/base/ip.ts'
import { compareText } from '#lib/base/order.ts'
import { same } from '#lib/base/same.ts'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { NODE_NETWORK, nodeNetworkRaw } from '#lib/kube/node-network.ts'
import type { Labels } from '#lib/model/labels.ts'
import type { Node, NodeNetwork } from '#lib/model/node.ts'
import type { Due, Subject } from './outbox.ts'
import { lookUp, TIMEOUT_MS, type StatusApi } from './status-api.ts'

/** Until then what was written may not have been heard of. */
const HEARD_MS = 10_000
/** Blocks are another one's. */
const FIELD_MANAGER = 'netplane-agent'

/** Of the node's addresses, as devices hold them, sorted. Without the tunnel only what is on the same wire is reached. */
export function subnetsOf(addresses: readonly Addr[], held: readonly Cidr[]): readonly Cidr[] {
  const own = held.filter(({ addr }) => addresses.includes(addr))
  const byText = new Map(own.map(({ addr, bits }) => ({ addr: maskAddr(addr, bits), bits })).map((cidr) => [formatCidr(cidr), cidr]))
  return [...byText].sort(([a], [b]) => compareText(a, b)).map(([, cidr]) => cidr)
}

export interface OwnNetworkOptions {
  readonly api: Pick<StatusApi, 'list' | 'apply'>
  readonly node: string
  /** its Node; undefined: it is not there, or not known yet */
  readonly self: () => Pick<Node, 'addresses' | 'podCIDRs' | 'labels'> | undefined
  /** what the others hear at present */
  readonly said: () => Omit<NodeNetwork, 'blocks'> | undefined
  /** addresses of this node's devices with the lengths of their prefixes; undefined: not known yet, or nobody asks */
  readonly held: () => readonly Cidr[] | undefined
}

type Facts = Pick<NodeNetwork, 'addresses' | 'podCIDRs' | 'subnets' | 'labels'>

export class OwnNetwork implements Subject {
  readonly name = 'network'
  readonly #options: OwnNetworkOptions
  #written: Facts | undefined
  #writtenAt = -Infinity

  constructor(options: OwnNetworkOptions) {
    this.#options = options
  }

  due(now: number): readonly Due[] {
    const { node, self, said } = this.#options
    const object = self()
    if (object === undefined) return []
    const before = said()
    const { addresses, podCIDRs, labels } = object
    const wanted = { addresses, podCIDRs, labels, subnets: this.#subnets(addresses, before?.subnets ?? []) }
    if (before !== undefined && same(wanted, factsOf(before))) return []
    if (same(wanted, this.#written) && now < this.#writtenAt + HEARD_MS) return []
    return [{ key: node, write: (signal) => this.#write(wanted, now, signal) }]
  }

  /** That no device has an address of a family, as while it changes, is no reason to forget. */
  #subnets(addresses: readonly Addr[], before: readonly Cidr[]): readonly Cidr[] {
    const held = this.#options.held()
    if (held === undefined) return before
    const found = subnetsOf(addresses, held)
    return [...found, ...before.filter((one) => !found.some(({ addr }) => isV4(addr) === isV4(one.addr)))]
  }

  async #write(facts: Facts, now: number, signal: AbortSignal): Promise<void> {
    const { api, node } = this.#options
    const owner = await lookUp(api, { apiVersion: 'v1', kind: 'Node', name: node }, signal)
    // a Node that is made again in between is heard of
    if (owner !== undefined) await api.apply(networkObject(owner, facts), { fieldManager: FIELD_MANAGER, signal, timeoutMs: TIMEOUT_MS })
    this.#written = facts
    this.#writtenAt = now
  }
}

function factsOf({ addresses, podCIDRs, subnets, labels }: Facts): Facts {
  return { addresses, podCIDRs, subnets, labels }
}

/** It goes when its Node does. */
function networkObject({ metadata: { name, uid } }: ApiObject, { labels, ...spec }: Facts): ApiObject {
  const metadata = { name, labels: labelRecord(labels), ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name, uid }] }
  return asApiObject({ ...NODE_NETWORK, metadata, spec: nodeNetworkRaw(spec) })
}

function labelRecord(labels: Labels): Readonly<Record<string, string>> {
  return Object.fromEntries(labels)
}
