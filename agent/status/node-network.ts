// SPDX-License-Identifier: Apache-2.0
/** This node's NodeNetwork: what the others have to know of it to reach its pods. Of Nodes each agent watches its
 * own alone. Layer: agent/status. */
import { isV4, maskAddr, type Addr, type Cidr } from '#lib/base/ip.ts'
import { by, compareText } from '#lib/base/order.ts'
import { deepEqual } from '#lib/base/deep-equal.ts'
import { isRefused } from '#lib/api/errors.ts'
import { asApiObject } from '#lib/api/resource.ts'
import { NODE_NETWORK, nodeNetworkRaw, sortedCidrs } from '#lib/kube/objects/node-network.ts'
import { isReachable } from '#lib/kube/parse/special-addresses.ts'
import type { Node, NodeInterface, NodeNetwork } from '#lib/model/node.ts'
import type { Due, Subject } from './outbox.ts'
import { TIMEOUT_MS, type StatusApi } from './status-api.ts'

/** Until then what was written may not have been heard of. */
const HEARD_MS = 10_000

/** Of the node's addresses, as devices hold them, sorted. Without the tunnel only what is on the same wire is
 * reached. */
export function subnetsOf(addresses: readonly Addr[], held: readonly Cidr[]): readonly Cidr[] {
  const own = held.filter(({ addr }) => addresses.includes(addr))
  return sortedCidrs(own.map(({ addr, bits }) => ({ addr: maskAddr(addr, bits), bits })))
}

/** Devices that have addresses of the node's own, sorted by name. `pods`: names of those that are pods'. */
export function interfacesOf(devices: Iterable<Device>, pods: ReadonlySet<string>): readonly NodeInterface[] {
  const own = [...devices].filter(({ name, loopback }) => !loopback && name !== FOREIGN_SERVICE_DEVICE && !pods.has(name))
  const named = own.map(({ name, addresses }) => ({ name, addresses: addresses.map(({ addr }) => addr).filter(isReachable) }))
  return named.filter(({ addresses }) => addresses.length > 0).sort(by(({ name }) => name, compareText))
}

interface Device {
  readonly name: string
  readonly loopback: boolean
  readonly addresses: readonly Cidr[]
}

/** Has service addresses of kube-proxy's IPVS mode. */
const FOREIGN_SERVICE_DEVICE = 'kube-ipvs0'

/** All but the blocks, which are the plugin's to say. */
export type Said = Omit<NodeNetwork, 'blocks'>

export interface OwnNetworkOptions {
  readonly api: Pick<StatusApi, 'create' | 'patch'>
  readonly node: string
  /** its Node; undefined: it is not there, or not known yet */
  readonly self: () => Pick<Node, 'addresses' | 'podCIDRs' | 'labels' | 'uid'> | undefined
  /** what the others hear at present */
  readonly said: () => Said | undefined
  /** addresses of this node's devices with the lengths of their prefixes; undefined: not known yet */
  readonly held: () => readonly Cidr[] | undefined
  /** programs of ours take what comes in the tunnel */
  readonly takesTunnel: () => boolean
  /** undefined: not known yet */
  readonly interfaces: () => readonly NodeInterface[] | undefined
}

type Facts = Pick<Said, 'addresses' | 'podCIDRs' | 'subnets' | 'labels' | 'interfaces' | 'vteps' | 'owner'>

export class OwnNetwork implements Subject {
  readonly name = 'network'
  readonly #options: OwnNetworkOptions
  #written: Facts | undefined
  #writtenAt = -Infinity

  constructor(options: OwnNetworkOptions) {
    this.#options = options
  }

  due(now: number): readonly Due[] {
    const [object, held, interfaces] = [this.#options.self(), this.#options.held(), this.#options.interfaces()]
    if (object === undefined || held === undefined || interfaces === undefined) return []
    const before = this.#options.said()
    const { addresses, podCIDRs, labels, uid: owner } = object
    const found = subnetsOf(addresses, held)
    // that no device has an address of a family, as while it changes, is no reason to forget
    const kept = (before?.subnets ?? []).filter((one) => !found.some(({ addr }) => isV4(addr) === isV4(one.addr)))
    // an older version's device takes it until then
    const vteps = before?.vteps === undefined || this.#options.takesTunnel() ? {} : { vteps: before.vteps }
    const wanted = { addresses, podCIDRs, subnets: sortedCidrs([...found, ...kept]), labels, interfaces, owner, ...vteps }
    const isHeard = before !== undefined && deepEqual(wanted, factsOf(before))
    if (isHeard) {
      // a difference after that is another client's doing
      this.#written = undefined
      return []
    }
    if (deepEqual(wanted, this.#written) && now < this.#writtenAt + HEARD_MS) return []
    return [{ key: this.#options.node, write: (signal) => this.#write({ wanted, before, now }, signal) }]
  }

  async #write(
    { wanted, before, now }: { readonly wanted: Facts; readonly before: Said | undefined; readonly now: number },
    signal: AbortSignal,
  ): Promise<void> {
    const { api, node } = this.#options
    const options = { signal, timeoutMs: TIMEOUT_MS }
    const raw = rawOf(node, wanted)
    const patch = async (): Promise<unknown> =>
      await api.patch({ ...NODE_NETWORK, name: node }, withoutOld(raw, before), { ...options, type: 'merge' })
    try {
      if (before === undefined) await api.create(asApiObject({ ...NODE_NETWORK, ...raw }), options)
      else await patch()
    } catch (thrown) {
      // it went: the next round has heard of that
      if (before !== undefined && isRefused(thrown, 'NotFound')) return
      // it came, or cannot be read
      if (before !== undefined || !isRefused(thrown, 'AlreadyExists')) throw thrown
      await patch()
    }
    this.#written = wanted
    this.#writtenAt = now
  }
}

function factsOf({ addresses, podCIDRs, subnets, labels, interfaces, vteps, owner }: Said): Facts {
  return { addresses, podCIDRs, subnets, labels, owner, ...(interfaces && { interfaces }), ...(vteps && { vteps }) }
}

/** It goes when the Node does that it was made for. */
function rawOf(name: string, facts: Facts) {
  const owners = facts.owner === undefined ? [] : [{ apiVersion: 'v1', kind: 'Node', name, uid: facts.owner }]
  return { metadata: { name, ownerReferences: owners }, spec: nodeNetworkRaw(facts) }
}

/** A merge takes away what is named. */
function withoutOld(raw: ReturnType<typeof rawOf>, before: Said | undefined): object {
  const gone = Object.fromEntries([...(before?.labels ?? [])].map(([label]) => [label, null]))
  const noVteps = Object.fromEntries(
    Object.keys(nodeNetworkRaw(before?.vteps ? { vteps: before.vteps } : {})).map((field) => [field, null]),
  )
  return { ...raw, spec: { ...noVteps, ...raw.spec, labels: { ...gone, ...raw.spec.labels } } }
}
