// SPDX-License-Identifier: Apache-2.0
/** Steps of an upgrade, run as a person's run is: look, run, look again. Layer: test. */
import type { ApiClient } from '#lib/api/client.ts'
import type { WriteOptions } from '#lib/api/client.ts'
import type { StorageClient } from '#upgrade/storage/options.ts'
import type { Step } from '#upgrade/steps/step.ts'

export interface Ran {
  /** steps that were not done before */
  readonly ran: readonly string[]
  readonly told: readonly string[]
}

/** Throws for what is in the way of a step, and where one is not done after it ran. */
export async function runSteps(steps: readonly Step[], signal: AbortSignal = new AbortController().signal): Promise<Ran> {
  const [ran, told]: [string[], string[]] = [[], []]
  for (const { name, look, run } of steps) {
    signal.throwIfAborted()
    const before = await look(signal)
    if (before.problems.length > 0) throw new Error(`${name}: ${before.problems.join('\n')}`)
    if (before.isDone) continue
    ran.push(name)
    await run(signal, (text) => told.push(text))
    const after = await look(signal)
    if (!after.isDone) throw new Error(`${name} is not done: ${after.problems.join('\n')}`)
  }
  return { ran, told }
}

/** Tells of each write that changes something, once the server has done it. */
export function watched(client: ApiClient, onWrite: () => void): StorageClient {
  const told = async <T>(options: WriteOptions | undefined, write: Promise<T>): Promise<T> => {
    const result = await write
    if (options?.dryRun !== true) onWrite()
    return result
  }
  return {
    request: (...call) => client.request(...call),
    get: (...call) => client.get(...call),
    list: (...call) => client.list(...call),
    create: (...call) => told(call[1], client.create(...call)),
    update: (...call) => told(call[1], client.update(...call)),
    patch: (...call) => told(call[2], client.patch(...call)),
    apply: (...call) => told(call[1], client.apply(...call)),
    delete: (...call) => told(call[1], client.delete(...call)),
  }
}
