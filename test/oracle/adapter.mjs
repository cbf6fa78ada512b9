// SPDX-License-Identifier: Apache-2.0
/** The compiled tables, walked as the programs walk them, behind the interface of the truth tables' runners. Each node has its own, and
 * the steps of a case are changes to them. Layer: test. */
import { PolicyCompiler } from '#agent/compile/policy/compiler.ts'
import { PolicyFeed } from '#agent/compile/policy/feed.ts'
import { judgeByTables } from '#agent/policy/judge.ts'
import { PolicyTables } from '#agent/policy/tables.ts'
import { objectsIn } from './objects.ts'
import { packetOf, storeOf } from './world.ts'
import { Store } from '#lib/store/store.ts'
import { refText } from '#lib/model/ref.ts'

const refused = (text) => console.error(`refused: ${text}`)
const nothing = () => ({ store: new Store({ sources: ['state'] }), nodes: new Map() })
const kept = { current: nothing() }

export default {
  name: 'tables',
  caseStart() {
    kept.current = nothing()
  },
  load(state) {
    const { store, nodes } = kept.current
    const wanted = new Map([...objectsIn(storeOf(state, refused).snapshot)].map((object) => [refText(object), object]))
    const gone = [...objectsIn(store.snapshot)].filter((object) => !wanted.has(refText(object)))
    store
      .sink('state')
      .apply([
        ...[...wanted.values()].map((object) => ({ kind: 'upsert', object })),
        ...gone.map(({ kind, namespace, name }) => ({ kind: 'delete', ref: { kind, namespace, name } })),
      ])
    const changes = store.takeChanges()
    for (const node of nodes.values()) node.tables.apply(node.compiler.change(node.feed.changes(changes, store.snapshot)))
    for (const { node } of state.pods) if (!nodes.has(node)) nodes.set(node, newNode(node, store.snapshot))
    return { nodes }
  },
  verdict({ nodes }, from, to, proto, port) {
    const packet = packetOf({ src: from.ip, dst: to.ip, proto, port })
    return { ingress: allows(nodes.get(to.node), packet, 'ingress'), egress: allows(nodes.get(from.node), packet, 'egress') }
  },
}

function newNode(name, snapshot) {
  const node = { feed: new PolicyFeed(name), compiler: new PolicyCompiler(), tables: new PolicyTables() }
  node.tables.apply(node.compiler.change(node.feed.all(snapshot)))
  return node
}

function allows(node, packet, direction) {
  return node === undefined || judgeByTables(node.tables, packet, { direction }).action === 'allow'
}
