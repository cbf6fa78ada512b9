// SPDX-License-Identifier: Apache-2.0
/** What a node costs the API server: its lists, its watches, and each change that it is told of; with more and more of them. Layer: bench. */
import type { ApiClient } from '#lib/api/client.ts'
import type { ApiServer } from '#lib/api/server.ts'
import { systemClock } from '#lib/base/clock.ts'
import { InternalError } from '#lib/base/errors.ts'
import { mapLimit } from '../../lab/command.ts'
import { waitFor } from '../../lab/wait.ts'
import { cpuOf, memoryOf } from '../base/process.ts'
import { writeChange } from './changes.ts'
import type { FanOutFigure, ListCost } from './figure.ts'
import { begins, listAll, Watcher, type Begin } from './watchers.ts'

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
  const kinds = await begins(client)
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
  const kinds: readonly Begin[] = await begins(client)
  await using stack = new AsyncDisposableStack()
  const cpu = meter(() => cpuOf(pid))
  const all = await mapLimit(
    Array.from({ length: watchers }, (_, at) => at),
    AT_ONCE,
    async () => stack.use(await Watcher.start(server, kinds)),
  )
  const sum = (of: 'bytes' | 'events'): number => all.reduce((total, watcher) => total + watcher[of], 0)
  const bytes = meter(() => sum('bytes'))
  await systemClock.sleep(IDLE_MS / 5, signal)
  const beginCpuMs = cpu()
  bytes()
  await systemClock.sleep(IDLE_MS, signal)
  const idle = { cpuMs: cpu(), bytes: bytes() }
  const begun = systemClock.now()
  const heard = sum('events')
  for (let change = 0; change < changes; change++) {
    await writeChange(client, options.services, round + change)
    await systemClock.sleep(CHANGE_EVERY_MS, signal)
  }
  const wanted = heard + watchers * changes
  const told = await waitFor(() => (sum('events') >= wanted ? true : undefined), { timeoutMs: TOLD_MS })
  if (told === undefined) throw new InternalError(`${wanted - sum('events')} of ${wanted - heard} events have not come`)
  const idleParts = (systemClock.now() - begun) / IDLE_MS
  return {
    watchers,
    beginCpuMs,
    memoryMb: memoryOf(pid).now,
    idleCpuMsPerSecond: (idle.cpuMs * 1000) / IDLE_MS,
    idleBytesPerSecond: (idle.bytes * 1000) / IDLE_MS,
    changeCpuMs: (cpu() - idle.cpuMs * idleParts) / changes,
    changeBytes: bytes() / changes,
  }
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
