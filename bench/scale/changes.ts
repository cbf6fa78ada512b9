// SPDX-License-Identifier: Apache-2.0
/** One changed EndpointSlice after the other: how long until it is in force. Layer: bench. */
import type { ApiClient } from '#lib/api/client.ts'
import { asApiObject, namedOf } from '#lib/api/resource.ts'
import { systemClock } from '#lib/base/clock.ts'
import { InternalError } from '#lib/base/errors.ts'
import { endpointAddress, slice } from '../generate.ts'
import type { Running } from './contender.ts'
import { ENDPOINTS } from './objects.ts'

const TIMEOUT_MS = 120_000
const LOOK_MS = 1

const SLICES = { apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice' } as const

export interface ChangeOptions {
  readonly client: ApiClient
  readonly running: Running
  readonly services: number
  /** numbers of the changes: addresses come from them */
  readonly rounds: readonly number[]
  /** from the end of one to the next */
  readonly pauseMs: number
  readonly signal: AbortSignal
}

export interface Changes {
  readonly seenMs: readonly number[]
  readonly toldMs: readonly number[]
}

export async function makeChanges(options: ChangeOptions): Promise<Changes> {
  const { client, rounds, pauseMs, signal } = options
  const changes = { seenMs: [] as number[], toldMs: [] as number[] }
  const stop = new AbortController()
  const watcher = new Watcher()
  const watching = watcher.run(client, stop.signal)
  try {
    for (const round of rounds) {
      await systemClock.sleep(pauseMs, signal)
      const { seenMs, told } = await change(options, round, watcher)
      changes.seenMs.push(seenMs)
      changes.toldMs.push(told)
    }
  } finally {
    stop.abort()
    await watching
  }
  return changes
}

async function change({ client, running, services, signal }: ChangeOptions, round: number, watcher: Watcher) {
  const { at, address } = changeOf(services, round)
  const lookup = await running.endpoint(at, address)
  const told = watcher.waitFor(address)
  const begun = systemClock.now()
  const written = writeChange(client, services, round)
  while (!(await lookup.sees())) {
    if (systemClock.now() - begun > TIMEOUT_MS) throw new InternalError(`change ${round} is not in force after ${TIMEOUT_MS} ms`)
    await systemClock.sleep(LOOK_MS, signal)
  }
  const seenMs = systemClock.now() - begun
  lookup.close()
  await written
  return { seenMs, told: (await told) - begun }
}

/** Spread over the whole cluster. */
function changeOf(services: number, round: number): { readonly at: number; readonly address: string } {
  const at = (round * 7919) % services
  return { at, address: endpointAddress(at, 0, round) }
}

/** Gives one slice another first endpoint: one that no other round gives it. */
export async function writeChange(client: ApiClient, services: number, round: number): Promise<void> {
  const changed = asApiObject(slice(changeOf(services, round).at, ENDPOINTS, round))
  await client.patch(namedOf(changed), { endpoints: changed['endpoints'] }, { type: 'merge' })
}

/** Another node, as it were: when it hears of a change. */
class Watcher {
  readonly #awaited = new Map<string, (at: number) => void>()

  /** When an event with this address has come. */
  waitFor(address: string): Promise<number> {
    const { promise, resolve } = Promise.withResolvers<number>()
    this.#awaited.set(`"${address}"`, resolve)
    return promise
  }

  async run(client: ApiClient, signal: AbortSignal): Promise<void> {
    const resourceVersion = await versionNow(client)
    try {
      for await (const events of client.watch(SLICES, { resourceVersion, timeoutSeconds: 3600, signal })) {
        const text = JSON.stringify(events)
        for (const [address, resolve] of this.#awaited)
          if (text.includes(address) && this.#awaited.delete(address)) resolve(systemClock.now())
      }
    } catch (thrown) {
      if (!signal.aborted) throw thrown
    }
  }
}

async function versionNow(client: ApiClient): Promise<string> {
  for await (const page of client.pages(SLICES, { limit: 1 })) return page.resourceVersion
  throw new InternalError('no page')
}
