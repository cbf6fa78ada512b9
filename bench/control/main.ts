// SPDX-License-Identifier: Apache-2.0
/** Control plane: start, restart and changes of the real agent on large directories. To be run in network and mount
 * namespaces of its own; writes its figures to standard output as JSON. Layer: bench. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '#lib/base/clock.ts'
import { InternalError } from '#lib/base/errors.ts'
import { addrBytes, parseAddr } from '#lib/base/ip.ts'
import { NODES, clusterIp, endpointAddress, replaceSlice, writeCluster } from '../generate.ts'
import { median, quantile } from '../base/statistics.ts'
import type { AgentProcess } from './agent-process.ts'
import { cleanUp } from './agent-process.ts'
import type { ControlFigure } from './result.ts'
import type { Sandbox } from './sandbox.ts'
import { CHANGE_TIMEOUT_MS, QUIET_MS, READY_MS, inSandbox, start } from './sandbox.ts'
import { ServiceRows, countRows, mapMemory } from './rows.ts'

const ENDPOINTS = 10
/** parts of an apply that write elsewhere */
const NO_MAPS = /"(connect|hooks|host-routes|sysctls|tunnel-device|xdp)/
/** between changes: what one has left is done before the next */
const PAUSE_MS = 20
/** in which the agent looks after everything but tables that it looks after by itself */
const IDLE_MS = 5000
/** in which it reads back every table once as well; as often as that for large clusters alone */
const ROUND = { ms: 60_000, services: 10_000 }
/** garbage, code to be compiled */
const LEFTOVERS_MS = 1000

interface Rounds extends Sandbox {
  readonly starts: number
  readonly changes: number
}

async function measure(ground: Rounds, services: number): Promise<ControlFigure> {
  const { place } = ground
  const resources = join(place.resources, String(services))
  writeCluster(resources, { services, endpoints: ENDPOINTS }, { cgroupV2Path: ground.cgroup })
  const here = { ...ground, place: { ...place, resources } }
  const cold = await startOften(here, services, true)
  const warm = await startOften(here, services, false)
  const agent = start(here)
  await agent.ready(READY_MS)
  await systemClock.sleep(QUIET_MS, ground.signal)
  const memoryMb = agent.memoryMb()
  const mapMb = mapMemory(agent.pid)
  const run = { agent, services }
  const changeMs = services === 0 ? [0] : await timeChanges(here, run)
  const idle = await cpuDuring(agent, () => systemClock.sleep(services < ROUND.services ? IDLE_MS : ROUND.ms, here.signal))
  const changeCpuMs = services === 0 ? 0 : await addedCpu(here, run, idle)
  await agent.end('SIGTERM')
  await cleanUp(here.place, ground.cgroup)
  rmSync(resources, { recursive: true })
  return {
    services,
    coldSeconds: cold.seconds,
    coldCpuMs: cold.cpuMs,
    warmSeconds: warm.seconds,
    warmCpuMs: warm.cpuMs,
    warmWrites: warm.writes,
    changeMs: {
      p25: quantile(changeMs, 0.25),
      p50: median(changeMs),
      p75: quantile(changeMs, 0.75),
      p99: quantile(changeMs, 0.99),
    },
    changeCpuMs,
    idleCpuPercent: (100 * idle.cpuMs) / idle.ms,
    memoryMb,
    mapMb,
  }
}

/** Cold: with nothing there before. Warm: over what the agent before has left. Each ends with a look into the maps. */
async function startOften(
  ground: Rounds,
  services: number,
  cold: boolean,
): Promise<{ seconds: number[]; cpuMs: number[]; writes: number }> {
  const done = { seconds: [] as number[], cpuMs: [] as number[], writes: 0 }
  for (let round = 0; round < ground.starts; round++) {
    if (cold) await cleanUp(ground.place, ground.cgroup)
    const agent = start(ground)
    done.seconds.push(await agent.ready(READY_MS))
    done.cpuMs.push(agent.cpuMs())
    const rows = await countRows(ground.place.pinDir)
    // those of this node have a second row
    if (rows.frontends !== services || rows.backends !== services * ENDPOINTS * (1 + 1 / NODES))
      throw new InternalError(`ready with ${rows.frontends} services and ${rows.backends} backends`)
    const writes = await agent.metric('netplane_changes_total')
    done.writes = [...writes].filter(([labels]) => !NO_MAPS.test(labels)).reduce((sum, [, value]) => sum + value, 0)
    await agent.end('SIGKILL')
  }
  return done
}

interface Run {
  readonly agent: AgentProcess
  readonly services: number
}

/** From rename() until a lookup sees the row, one change after another in services spread over the whole cluster. */
async function timeChanges(ground: Rounds, run: Run): Promise<readonly number[]> {
  const ms: number[] = []
  for (let round = 1; round <= ground.changes; round++) {
    ms.push(await change(ground, run, { round, everyMs: 0 }))
    await systemClock.sleep(PAUSE_MS, ground.signal)
  }
  return ms
}

/** CPU that a change adds, in ms: that of as many more, and of what they leave to be done, less what the agent takes
 * for itself in as long. They are seldom looked for, as that takes caches from it, and those before have had most
 * of its code compiled. */
async function addedCpu(ground: Rounds, run: Run, idle: Taken): Promise<number> {
  const { agent } = run
  const busy = await cpuDuring(agent, async () => {
    for (let round = ground.changes + 1; round <= 2 * ground.changes; round++) await change(ground, run, { round, everyMs: PAUSE_MS })
    await systemClock.sleep(LEFTOVERS_MS, ground.signal)
  })
  return (busy.cpuMs - (idle.cpuMs / idle.ms) * busy.ms) / ground.changes
}

interface Taken {
  readonly ms: number
  readonly cpuMs: number
}

async function cpuDuring(agent: AgentProcess, work: () => Promise<void>): Promise<Taken> {
  const [start, before] = [systemClock.now(), agent.cpuMs()]
  await work()
  return { ms: systemClock.now() - start, cpuMs: agent.cpuMs() - before }
}

/** Puts another slice in place. Resolves with the ms until its row is there, which is looked for so often; 0: all
 * the time. */
async function change(
  { place, signal }: Rounds,
  { services }: Run,
  how: { readonly round: number; readonly everyMs: number },
): Promise<number> {
  const { round, everyMs } = how
  const at = (round * 7919) % services
  const rows = new ServiceRows(place.pinDir, clusterIp(at))
  const wanted = addrBytes(parseAddr(endpointAddress(at, 0, round)))
  const start = systemClock.now()
  replaceSlice(place.resources, at, { endpoints: ENDPOINTS, generation: round })
  while (!rows.has(wanted)) {
    if (systemClock.now() - start > CHANGE_TIMEOUT_MS)
      throw new InternalError(`change ${round} is not in the maps after ${CHANGE_TIMEOUT_MS} ms`)
    if (everyMs > 0) await systemClock.sleep(everyMs, signal)
  }
  const ms = systemClock.now() - start
  rows.close()
  return ms
}

async function main(argv: readonly string[]): Promise<void> {
  const [sizes = '0,1000,10000', starts = '3', changes = '100'] = argv
  await inSandbox(async (ground) => {
    const figures: ControlFigure[] = []
    for (const services of sizes.split(',').map(Number))
      figures.push(await measure({ ...ground, starts: Number(starts), changes: Number(changes) }, services))
    process.stdout.write(`${JSON.stringify(figures)}\n`)
  })
}

await main(process.argv.slice(2))
