// SPDX-License-Identifier: Apache-2.0
/** What a node costs the API server: its lists, its watches, and each change that it hears of; with more and more
 * of them. Layer: bench. */
import type { ApiClient } from '#lib/api/client.ts'
import type { ApiServer } from '#lib/api/connection/server.ts'
import { systemClock } from '#lib/base/clock.ts'
import { InternalError } from '#lib/base/errors.ts'
import { mapLimited } from '#lib/base/async/map-limited.ts'
import { waitFor } from '../../lab/wait.ts'
import { cpuOf, memoryOf } from '../base/process.ts'
import { NODES } from '../generate.ts'
import { writeChange } from './changes.ts'
import type { FanOutFigure, ListCost } from './result.ts'
import { nodeName, writeBlocks, writeImages, writeReport } from './reports.ts'
import { begins, kindsOn, listAll, Watcher, type Told } from './watchers.ts'

const AT_ONCE = 10
const LISTS = 3
const IDLE_MS = 5000
const CHANGE_EVERY_MS = 20
const TOLD_MS = 60_000

export interface FanOutOptions {
  readonly server: ApiServer
  readonly client: ApiClient
  /** the server's process */
  readonly pid: number
  readonly services: number
  readonly changes: number
  readonly signal: AbortSignal
}

export async function listCosts({ client, pid }: FanOutOptions): Promise<ListCost[]> {
  const kinds = await begins(client, nodeName(0))
  const costs: ListCost[] = []
  for (const packed of [false, true]) {
    await listAll(client, kinds, packed)
    const before = cpuOf(pid)
    let bytes = 0
    for (let list = 0; list < LISTS; list++) bytes += await listAll(client, kinds, packed)
    costs.push({ packed, cpuMs: (cpuOf(pid) - before) / LISTS, bytes: bytes / LISTS })
  }
  return costs
}

/** `round`: from which the changes are counted, so that each has an address of its own. */
export async function fanOut(options: FanOutOptions, watchers: number, round: number): Promise<FanOutFigure> {
  const { server, client, pid, signal, changes } = options
  const kinds = await begins(client, nodeName(0))
  await using stack = new AsyncDisposableStack()
  const cpu = meter(() => cpuOf(pid))
  const all = await mapLimited(
    Array.from({ length: watchers }, (_, at) => at),
    AT_ONCE,
    async (at) => stack.use(await Watcher.start(server, kindsOn(nodeName(at), kinds))),
  )
  const bytes = meter(() => all.reduce((total, watcher) => total + watcher.bytes, 0))
  await systemClock.sleep(IDLE_MS / 5, signal)
  const beginCpuMs = cpu()
  bytes()
  await systemClock.sleep(IDLE_MS, signal)
  const idle = { cpuMs: cpu(), bytes: bytes() }
  /** Of one of so many writes, until as many watchers as expected have heard of each, beyond what passes when nothing
   * changes. */
  const told = async (kind: Told, hearers: number, write: (at: number) => Promise<void>): Promise<Cost> => {
    const heard = (): number => all.reduce((total, watcher) => total + watcher.heard(kind), 0)
    const begun = systemClock.now()
    const wanted = heard() + hearers * changes
    for (let at = 0; at < changes; at++) {
      await write(at)
      await systemClock.sleep(CHANGE_EVERY_MS, signal)
    }
    if ((await waitFor(() => (heard() >= wanted ? true : undefined), { timeoutMs: TOLD_MS })) === undefined)
      throw new InternalError(`${wanted - heard()} of ${hearers * changes} events of ${kind} have not come`)
    const idleParts = (systemClock.now() - begun) / IDLE_MS
    return { cpuMs: (cpu() - idle.cpuMs * idleParts) / changes, bytes: bytes() / changes }
  }
  const change = await told('EndpointSlice', watchers, (at) => writeChange(client, options.services, round + at))
  const network = await told('NodeNetwork', watchers, (at) => writeBlocks(client, round + at))
  for (let at = 0; at < NODES; at++) await writeImages(client, at)
  await systemClock.sleep(IDLE_MS / 5, signal)
  cpu()
  bytes()
  // each hears of its own node alone
  const report = await told('Node', Math.min(1, watchers), (at) => writeReport(client, round + at))
  return {
    watchers,
    beginCpuMs,
    memoryMb: memoryOf(pid).now,
    idleCpuMsPerSecond: (idle.cpuMs * 1000) / IDLE_MS,
    idleBytesPerSecond: (idle.bytes * 1000) / IDLE_MS,
    changeCpuMs: change.cpuMs,
    changeBytes: change.bytes,
    networkCpuMs: network.cpuMs,
    networkBytes: network.bytes,
    reportCpuMs: report.cpuMs,
    reportBytes: report.bytes,
  }
}

interface Cost {
  readonly cpuMs: number
  readonly bytes: number
}

/** What has been added since it was last asked. */
function meter(read: () => number): () => number {
  let before = read()
  return () => {
    const now = read()
    const more = now - before
    before = now
    return more
  }
}
