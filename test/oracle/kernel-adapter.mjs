// SPDX-License-Identifier: Apache-2.0
/** The loaded programs behind the interface of the truth tables' runners: packets through hooks, for each node of a
 * state. Needs root. Layer: test. */
import { KernelNode } from './kernel-node.ts'
import { Nodes } from './nodes.ts'
import { packetOf } from './world.ts'

/** Nodes of the case's states; programs stay loaded for the next case. */
const kept = { nodes: undefined, spare: [] }

export default {
  name: 'programs',
  /** Whatever the case before has left must go away by the rules of going away. */
  async caseStart() {
    kept.nodes?.empty()
    for (const node of kept.nodes?.all ?? []) {
      await node.mustBeEmpty()
      kept.spare.push(node)
    }
    kept.nodes = undefined
  },
  async load(state) {
    kept.nodes ??= new Nodes(() => kept.spare.pop())
    const more = new Set(state.pods.map(({ node }) => node)).size
    while (kept.spare.length < more) kept.spare.push(await KernelNode.load())
    kept.nodes.load(state)
    return kept.nodes
  },
  verdict(nodes, from, to, proto, port) {
    const packet = packetOf({ src: from.ip, dst: to.ip, proto, port })
    const [source, destination] = [nodes.at(from.node), nodes.at(to.node)]
    const egress = source === undefined || source.egress(packet)
    const ingress = destination === undefined || destination.ingress(packet)
    if (source !== undefined && source === destination && source.both(packet) !== (egress && ingress))
      throw new Error(`between pods of one node: ${JSON.stringify({ from, to, proto, port, egress, ingress })}`)
    return { ingress, egress }
  },
}
