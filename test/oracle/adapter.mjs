// SPDX-License-Identifier: Apache-2.0
/** The compiled tables, walked as the programs walk them, behind the interface of the truth tables' runners.
 * Layer: test. */
import { judgeByTables } from '#agent/policy/judge.ts'
import { PolicyTables } from '#agent/policy/table-rows.ts'
import { Nodes } from './nodes.ts'
import { packetOf } from './world.ts'

const start = () =>
  new Nodes(() => {
    const tables = new PolicyTables()
    return { tables, take: (steps) => tables.apply(steps) }
  })
const kept = { nodes: start() }

export default {
  name: 'tables',
  caseStart() {
    kept.nodes = start()
  },
  load(state) {
    kept.nodes.load(state)
    return kept.nodes
  },
  verdict(nodes, from, to, proto, port) {
    const packet = packetOf({ src: from.ip, dst: to.ip, proto, port })
    return { ingress: allows(nodes.at(to.node), packet, 'ingress'), egress: allows(nodes.at(from.node), packet, 'egress') }
  },
}

function allows(node, packet, direction) {
  return node === undefined || judgeByTables(node.tables, packet, { direction }).action === 'allow'
}
