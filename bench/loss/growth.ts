// SPDX-License-Identifier: Apache-2.0
/** Exchange after exchange until flow tables are full and become larger, under load. Layer: bench. */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { InternalError } from '#lib/base/errors.ts'
import { Lab } from '../../lab/lab.ts'
import type { Load } from '../../lab/traffic/load.ts'
import { LOAD, NODE_PORT_REMOTE } from './cluster.ts'
import type { LossFigure } from './result.ts'
import { countOf, lossesUnder, rest, timed, untilSaid } from './under.ts'

const LAB = 'benchgrow'
/** so small that some seconds fill it; three doublings are allowed */
const ROOM = 4096
const GROWN_MS = 120_000
/** Datagrams that are answered: each exchange has two entries on the node that the client asks, and stays for minutes.
 * Connections that have ended would make room instead. */
const FILL: Load = {
  flows: LOAD.flows,
  requests: [...LOAD.requests, { from: 'client', to: { ...NODE_PORT_REMOTE, proto: 'udp' }, rate: 300 }],
}

/** Until each node's table has grown; control: the same load on tables of the usual size. */
export async function grow(resources: string, usual: Lab): Promise<LossFigure> {
  const small = mkdtempSync(join(tmpdir(), 'netplane-bench-'))
  try {
    cpSync(resources, small, { recursive: true })
    shrink(join(small, 'cluster.yaml'))
    await Lab.remove(LAB)
    await using lab = await Lab.up({ name: LAB, resources: small })
    const run = { lasted: 0 }
    const fault = await lossesUnder(lab, FILL, async () => {
      run.lasted = await timed(async () => {
        await untilSaid(lab, 'flow-table.resized', GROWN_MS)
        await untilSaid(lab, 'programs.retired', GROWN_MS)
      })
    })
    const runs = lab.topology.nodes.reduce((sum, { name }) => sum + countOf(lab, name, 'flow-table.resized'), 0)
    return { id: 'map-growth', runs, fault, control: await lossesUnder(usual, FILL, () => rest(run.lasted)) }
  } finally {
    rmSync(small, { recursive: true })
  }
}

function shrink(path: string): void {
  const text = readFileSync(path, 'utf8')
  const smaller = text.replace(/(?<=^kind: FelixConfiguration$[^]*?^spec:\n)/m, `  bpfMapSizeConntrack: ${ROOM}\n`)
  if (smaller === text) throw new InternalError(`${path} has no FelixConfiguration with a spec`)
  writeFileSync(path, smaller)
}
