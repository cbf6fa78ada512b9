// SPDX-License-Identifier: Apache-2.0
/** Straight to a backend, then from the same port by its service: the second connection's SYN must not be lost.
 * Layer: bench. */
import { InternalError } from '#lib/base/errors.ts'
import { mustRun } from '../../lab/processes/command.ts'
import type { Lab } from '../../lab/lab.ts'
import { toolCommand } from '../../lab/paths.ts'
import { endpointText, type Endpoint } from '../../lab/tools/address.ts'
import { isCollideResult } from '../../lab/tools/results.ts'
import { podNamed } from '../../lab/network/topology.ts'
import { BACKEND, BACKEND_NODE, CLUSTER_IP, NODE_PORT_LOCAL, NODE_PORT_REMOTE, POD } from './cluster.ts'
import type { LossFigure, Losses } from './result.ts'
import { sumOf } from './sum.ts'

interface Way {
  readonly from: 'pod' | 'client'
  readonly to: Endpoint
  /** the first connection is still there; only where one node sees both can the second get another port */
  readonly keepOpen: boolean
}

const WAYS: readonly Way[] = [
  { from: 'pod', to: CLUSTER_IP, keepOpen: false },
  { from: 'pod', to: CLUSTER_IP, keepOpen: true },
  { from: 'client', to: NODE_PORT_LOCAL, keepOpen: false },
  { from: 'client', to: NODE_PORT_LOCAL, keepOpen: true },
  { from: 'client', to: NODE_PORT_REMOTE, keepOpen: false },
]
/** Out of the way of ports that the kernel gives out. */
const FIRST_PORT = 20_000

/** `tries` by each of the ways; control: the second connection has a port of its own. */
export async function collide(lab: Lab, tries: number): Promise<LossFigure> {
  await lab.mustRun('client', ['ip', 'route', 'replace', BACKEND.address, 'via', BACKEND_NODE])
  const results = { fault: [] as Losses[], control: [] as Losses[] }
  for (const kind of ['fault', 'control'] as const)
    for (const [at, way] of WAYS.entries()) {
      const firstPort = FIRST_PORT + (kind === 'control' ? 5000 : 0) + at * 1000
      const extra = [...(way.keepOpen ? ['--keep-open'] : []), ...(kind === 'control' ? ['--other-port'] : [])]
      results[kind].push(await tried(lab, way, ['--tries', String(tries), '--first-port', String(firstPort), ...extra]))
    }
  return { id: 'port-collision', runs: tries * WAYS.length, fault: sumOf(results.fault), control: sumOf(results.control) }
}

async function tried(lab: Lab, way: Way, flags: readonly string[]): Promise<Losses> {
  const command = [...toolCommand('port-collision'), '--direct', endpointText(BACKEND), '--service', endpointText(way.to), ...flags]
  // outside the node's cgroup nothing translates at connect: it is the packets that must be
  const line =
    way.from === 'pod' ? ['nsenter', `--net=/run/netns/${podNamed(lab.topology, POD).netns}`, ...command] : lab.commandIn('client', command)
  const output = await mustRun(line)
  const result: unknown = JSON.parse(output)
  if (!isCollideResult(result)) throw new InternalError(`collide wrote no result: ${output.slice(0, 200)}`)
  return { lost: result.lostSyns, refused: result.tries - result.answered, socketDrops: 0, softnetDrops: 0 }
}
