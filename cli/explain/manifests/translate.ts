// SPDX-License-Identifier: Apache-2.0
/** What a node does with a packet's destination: which service it means, and which backends it may go to. Layer: cli
 * (pure). */
import {
  ADDR_EXTERNAL,
  ADDR_LOCAL_POD,
  ADDR_SERVICE,
  FRONTEND_INSIDE_LOCAL,
  FRONTEND_NODE_PORT,
  FRONTEND_OUTSIDE_LOCAL,
  FRONTEND_PODS,
  FRONTEND_RANGES,
  STRAY_DROP,
  STRAY_PASS,
} from '#lib/base/bpf-constants.ts'
import { formatAddr, hostPort, protocolText, type Addr } from '#lib/base/ip.ts'
import { hasPorts, type Packet } from '#lib/policy/packet.ts'
import type { Frontend, NodeView } from './node-view.ts'
import type { ExplainedCluster } from './cluster.ts'

export interface BackendText {
  readonly address: string
  readonly port: number
  /** "shop/db-0", "node n1", "outside" */
  readonly owner: string
  readonly node: string | null
}

export interface Translation {
  /** at which it happens */
  readonly node: string
  /** "shop/db" */
  readonly service: string
  /** "10.96.0.1:80/TCP" */
  readonly frontend: string
  readonly nodePort: boolean
  /** kube-proxy: in Standard mode, of what no pod of the node sends; it chooses among endpoints by rules of its own */
  readonly by: 'Netplane' | 'kube-proxy'
  /** from which list it chooses: as this node's pods and processes do, or as the network does */
  readonly choice: 'inside' | 'outside'
  /** one of these is chosen */
  readonly backends: readonly BackendText[]
}

/** Why a packet goes nowhere: `refuse` is answered, `drop` is not. */
export interface Stop {
  readonly verdict: 'refuse' | 'drop'
  readonly reason: string
}

export interface Translated {
  readonly translation: Translation | undefined
  readonly stop: Stop | undefined
  /** as it goes on: one for each backend, itself where nothing is translated */
  readonly packets: readonly Packet[]
}

export function translate(
  world: ExplainedCluster,
  node: NodeView,
  { packet, inside }: { readonly packet: Packet; readonly inside: boolean },
): Translated {
  const { dst, dport, protocol } = packet
  const frontend = node.frontend(dst, dport, protocol)
  if (frontend === undefined) return { translation: undefined, stop: strayStop(world, node, { packet, inside }), packets: [packet] }
  const { list } = inside ? frontend.value.inside : frontend.value.outside
  const backends = node.backends(list)
  const translation: Translation = {
    node: node.name,
    service: frontend.service,
    frontend: `${hostPort(formatAddr(dst), dport)}/${protocolText(protocol)}`,
    nodePort: (frontend.value.flags & FRONTEND_NODE_PORT) !== 0,
    by: (frontend.value.flags & FRONTEND_PODS) !== 0 && !isFromPod(node, packet, inside) ? 'kube-proxy' : 'Netplane',
    choice: inside ? 'inside' : 'outside',
    backends: backends.map(({ addr, port }) => backendText(world, addr, port)),
  }
  const packets = backends.map(({ addr, port }) => ({ ...packet, dst: addr, dport: port }))
  return { translation, stop: stopAt(node, frontend, { packet, inside, isEmpty: backends.length === 0 }), packets }
}

function isFromPod(node: NodeView, { src }: Packet, inside: boolean): boolean {
  return inside && node.addr(src)?.kind === ADDR_LOCAL_POD
}

export function backendText(world: ExplainedCluster, addr: Addr, port: number): BackendText {
  return { address: formatAddr(addr), port, owner: world.ownerText(addr), node: world.owner(addr).node ?? null }
}

interface Came {
  readonly packet: Packet
  readonly inside: boolean
  readonly isEmpty: boolean
}

function stopAt(node: NodeView, { value }: Frontend, { packet, inside, isEmpty }: Came): Stop | undefined {
  if ((value.flags & FRONTEND_RANGES) !== 0 && !node.isInRange(value.inside.list, packet.src))
    return { verdict: 'drop', reason: "the source is outside the load balancer's source ranges" }
  if (!isEmpty) return undefined
  return (value.flags & (inside ? FRONTEND_INSIDE_LOCAL : FRONTEND_OUTSIDE_LOCAL)) !== 0
    ? { verdict: 'drop', reason: 'traffic policy Local, and no endpoint on this node' }
    : { verdict: 'refuse', reason: 'the service has no endpoint' }
}

/** A service's address on a port that it does not have. One that is not of a cluster's own range may be a host's:
 * what this node's pods and processes send goes there; what comes from the network would go back, unless it is for
 * the cluster. */
function strayStop(world: ExplainedCluster, node: NodeView, { packet, inside }: Omit<Came, 'isEmpty'>): Stop | undefined {
  const { dst, dport, protocol } = packet
  const { strayService } = node.config.compile.knobs
  const { kind = 0, flags = 0 } = node.addr(dst) ?? {}
  const returns = (flags & ADDR_EXTERNAL) !== 0 && !inside && world.owner(dst).node === undefined
  if ((kind !== ADDR_SERVICE && !returns) || strayService === STRAY_PASS) return undefined
  const what = hasPorts(protocol) ? `no service has port ${dport}/${protocolText(protocol)}` : 'services answer no such packets'
  return { verdict: strayService === STRAY_DROP ? 'drop' : 'refuse', reason: `${what} at ${formatAddr(dst)}` }
}
