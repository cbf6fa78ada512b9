// SPDX-License-Identifier: Apache-2.0
/** Agents die and come back under load: nothing is lost, and the second start finds everything as it should be.
 * Layer: demo. */
import { readFileSync } from 'node:fs'
import { systemClock } from '#lib/base/clock.ts'
import { longer } from '../../lab/slowness.ts'
import { startFlow, startRequests } from '../../lab/traffic/traffic.ts'
import { total } from '../metrics.ts'
import type { Piece, Row } from '../report.ts'
import { NODES, type Stage } from '../stage.ts'
import { failureText } from './answers.ts'
import { FLOW_HEAD, flowRows } from './flows.ts'

const PROTOS = ['udp', 'tcp'] as const

export async function* restart(stage: Stage): AsyncGenerator<Piece> {
  const control = await underLoad(stage, () => pause(4000))
  yield* told('control', control)
  const killed: number[] = []
  const faulted = await underLoad(stage, async () => {
    await pause(1000)
    killed.push(...NODES.map((node) => stage.lab.agents.pid(node) ?? 0))
    await Promise.all(NODES.map((node) => stage.lab.agents.stop(node, 'SIGKILL')))
    await pause(1000)
    await stage.lab.startAgents(true)
    await pause(1000)
  })
  yield* told('agents killed', faulted)
  const rows: Row[] = []
  for (const [at, node] of NODES.entries()) rows.push(await secondStart(stage, node, killed[at] ?? 0))
  yield { kind: 'table', head: ['NODE', 'AGENT', 'THE SECOND START FOUND', 'CHANGED IN THE KERNEL'], rows }
}

interface Load {
  readonly rows: (run: string) => Row[]
  readonly requests: { readonly cells: readonly string[]; readonly ok: boolean }
  readonly drops: string
}

/** Established streams of both families and protocols from outside and from a pod, and new connections, while
 * `meanwhile` goes on. */
async function underLoad(stage: Stage, meanwhile: () => Promise<void>): Promise<Load> {
  const { lab } = stage
  const outside = ([4, 6] as const).flatMap((family) => PROTOS.map((proto) => stage.nodePort('node-a', proto, family)))
  const inside = PROTOS.map((proto) => stage.clusterIp(proto, 4))
  const before = softnetDrops()
  const client = await startFlow(lab, { from: 'client', to: outside })
  const pod = await startFlow(lab, { from: 'shell-a', to: inside })
  const requests = startRequests(lab, { from: 'far', to: stage.nodePort('node-a', 'tcp', 4), count: 0, rate: 50 })
  await requests.event('started', 10_000)
  await meanwhile()
  const shorts = await requests.stop()
  const results = { client: await client.stop(), pod: await pod.stop() }
  const failures = failureText(shorts)
  return {
    rows: (run) => [...flowRows(results.client, { run, from: 'client' }), ...flowRows(results.pod, { run, from: 'shell-a' })],
    requests: { cells: [`${shorts.ok} new connections, ${failures}`], ok: shorts.ok > 0 && failures === 'no failure' },
    drops: `receive queues of sockets dropped ${results.client.socketDrops + results.pod.socketDrops}, of processors ${softnetDrops() - before}`,
  }
}

function* told(run: string, load: Load): Generator<Piece> {
  yield { kind: 'table', head: FLOW_HEAD, rows: load.rows(run) }
  yield { kind: 'table', head: ['RUN', 'SEEN'], rows: [{ cells: [run, ...load.requests.cells], ok: load.requests.ok }] }
  yield { kind: 'evidence', title: `besides, in the ${run} run:`, lines: [load.drops] }
}

/** What the agent itself counted since its start. */
async function secondStart(stage: Stage, node: string, before: number): Promise<Row> {
  const pid = stage.lab.agents.pid(node)
  const metrics = await stage.metrics(node)
  const [rows, changes, failures] = ['netplane_map_rows', 'netplane_changes_total', 'netplane_failures_total'].map((name) =>
    total(metrics, name),
  )
  const found = `${rows ?? 0} rows in maps, ${total(metrics, 'netplane_attached_hooks')} hooks attached`
  return {
    cells: [node, `pid ${before} → ${pid ?? 'none'}`, found, `${changes ?? '?'} changes, ${failures ?? '?'} failures`],
    ok: pid !== undefined && pid !== before && (rows ?? 0) > 0 && changes === 0 && failures === 0,
  }
}

/** Packets that the machine's processors could not queue; of the whole machine. */
function softnetDrops(): number {
  const lines = readFileSync('/proc/net/softnet_stat', 'latin1').trim().split('\n')
  return lines.reduce((sum, line) => sum + Number.parseInt(line.split(' ')[1] ?? '0', 16), 0)
}

async function pause(ms: number): Promise<void> {
  await systemClock.sleep(longer(ms), new AbortController().signal)
}
