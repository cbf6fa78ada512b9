// SPDX-License-Identifier: Apache-2.0
/** The service's cluster address from pods on both nodes, and from the nodes themselves. Layer: demo. */
import { hostPort } from '#lib/base/ip.ts'
import { request } from '../../lab/traffic/traffic.ts'
import type { Piece, Row } from '../report.ts'
import type { Stage } from '../stage.ts'
import { answerCells, saw } from './answers.ts'

const PLACES = ['shell-a', 'shell-b', 'node/node-a', 'node/node-b']

export async function* clusterIp(stage: Stage): AsyncGenerator<Piece> {
  const rows: Row[] = []
  for (const family of [4, 6] as const) {
    for (const from of PLACES) {
      for (const proto of ['tcp', 'udp'] as const) {
        const to = stage.clusterIp(proto, family)
        const own = stage.addressOf(from, family)
        const result = await request(stage.lab, { from, to })
        const ok = result.ok === 1 && result.answers[0]?.pod === 'web-1' && saw(result) === own
        rows.push({ cells: [from, own, `${proto} ${hostPort(to.address, to.port)}`, ...answerCells(stage, result)], ok })
      }
    }
  }
  yield { kind: 'table', head: ['FROM', 'ITS ADDRESS', 'ASKED', 'ANSWERED', 'THE POD SAW'], rows }
}
