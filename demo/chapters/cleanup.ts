// SPDX-License-Identifier: Apache-2.0
/** --cleanup leaves a node as it was before there was an agent. Layer: demo. */
import { hostPort } from '#lib/base/ip.ts'
import { request } from '../../lab/traffic/traffic.ts'
import type { Piece, Row } from '../report.ts'
import { NODES, type Stage } from '../stage.ts'
import { failureText } from './answers.ts'

export async function* cleanup(stage: Stage): AsyncGenerator<Piece> {
  const { lab } = stage
  const rows: Row[] = []
  for (const node of NODES) {
    await lab.agents.stop(node, 'SIGTERM')
    const to = stage.nodePort(node, 'tcp', 4)
    const still = await request(lab, { from: 'client', to })
    rows.push({
      cells: [
        `${node}: agent stopped`,
        `${hostPort(to.address, to.port)} ${still.ok === 1 ? 'still answers: the programs work alone' : failureText(still)}`,
      ],
      ok: still.ok === 1,
    })
  }
  for (const node of NODES) {
    const outcome = await lab.run({ kind: 'node', node }, [...lab.agentCommand, '--cleanup'])
    rows.push({
      cells: [`${node}: netplane-agent --cleanup`, outcome.status === 0 ? 'done' : outcome.stderr.trim()],
      ok: outcome.status === 0,
    })
    const changed = await stage.changedOn(node)
    const seen =
      changed.length === 0
        ? 'links, addresses, routes, rules, filters, pins, settings as before'
        : `${changed.length} differ: ${changed.slice(0, 3).join('; ')}`
    rows.push({ cells: [`${node}: compared with before the agent`, seen], ok: changed.length === 0 })
  }
  const to = stage.nodePort('node-a', 'tcp', 4)
  const after = await request(lab, { from: 'client', to })
  rows.push({
    cells: ['the node port is a closed port again', `${hostPort(to.address, to.port)}: ${failureText(after)}`],
    ok: after.refused === 1,
  })
  yield { kind: 'table', head: ['WHAT', 'SEEN'], rows }
}
