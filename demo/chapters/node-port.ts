// SPDX-License-Identifier: Apache-2.0
/** NodePort through the node without the pod: the answer comes, and the pod saw the client itself. Layer: demo. */
import { hostPort } from '#lib/base/ip.ts'
import { IN_TUNNEL, startCapture } from '../../lab/traffic/capture.ts'
import { request } from '../../lab/traffic/traffic.ts'
import { growth } from '../metrics.ts'
import type { Piece, Row } from '../report.ts'
import { NODES, type Family, type Stage } from '../stage.ts'
import { answerCells, saw } from './answers.ts'

const ENTRY = 'node-a'

export async function* nodePort(stage: Stage, family: Family): AsyncGenerator<Piece> {
  const before = await Promise.all(NODES.map((node) => stage.metrics(node)))
  const capture = await startCapture(stage.lab, { place: 'fabric', device: 'br0', filter: IN_TUNNEL })
  const rows: Row[] = []
  for (const from of ['client', 'far']) {
    for (const proto of ['tcp', 'udp'] as const) {
      const to = stage.nodePort(ENTRY, proto, family)
      const own = stage.addressOf(from, family)
      const result = await request(stage.lab, { from, to })
      const ok = result.ok === 1 && result.answers[0]?.pod === 'web-1' && saw(result) === own
      rows.push({ cells: [from, own, `${proto} ${hostPort(to.address, to.port)}`, ...answerCells(stage, result)], ok })
    }
  }
  yield { kind: 'table', head: ['FROM', 'ITS ADDRESS', 'ASKED', 'ANSWERED', 'THE POD SAW'], rows }
  const lines = await capture.stop(2)
  const shown = tunnelled(lines, stage.addressOf('client', family)).slice(0, 4)
  yield {
    kind: 'evidence',
    title: `on the wire between the nodes: a packet in a packet, the inner one from ${stage.addressOf('client', family)} itself`,
    lines: shown,
  }
  const after = await Promise.all(NODES.map((node) => stage.metrics(node)))
  yield {
    kind: 'evidence',
    title: 'counted by the programs',
    lines: NODES.map(
      (node, at) => `${node}: ${growth(before[at] ?? new Map(), after[at] ?? new Map(), 'netplane_packets_total').join(', ')}`,
    ),
  }
  const sent = shown.length > 0
  yield {
    kind: 'table',
    head: ['WHAT', 'SEEN'],
    rows: [{ cells: ['tunnel carries the client address', sent ? 'yes' : `not in ${lines.length} captured lines`], ok: sent }],
  }
}

/** tcpdump prints the tunnel's packet and, on the next line, the one inside: both, where the inside is this
 * client's. */
function tunnelled(lines: readonly string[], client: string): string[] {
  return lines.flatMap((line, at) => {
    const inner = lines[at + 1]
    const isPair =
      line.includes('VXLAN') && inner !== undefined && new RegExp(`^IP6? ${client.replaceAll('.', String.raw`\.`)}\\.\\d+ >`).test(inner)
    return isPair ? [line, `  ${inner}`] : []
  })
}
